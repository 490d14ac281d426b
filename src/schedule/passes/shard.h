// SPDX-License-Identifier: Apache-2.0
// Adds the collectives of replicas that share one batch (docs/mesh.md, "Replicas"): gradients are reduced
// over them once a step; shared states (ZeRO, Rajbhandari et al., SC'20) give the weights back by gathers.
#pragma once

#include <cstdint>
#include <functional>

#include "base/units.h"
#include "schedule/program.h"
#include "schedule/units.h"

namespace penstock::schedule {

// What each replica keeps of the states.
enum class ReplicaStates : std::uint8_t {
  Whole,   // everything: gradients are all-reduced (ZeRO stage 0)
  Shared,  // masters and moments of its share (stage 1)
  Passing  // also weights and gradients of its share; whole ones exist while they are used (stage 3)
};

struct ReplicaSync {
  ReplicaStates states = ReplicaStates::Whole;
  bool reduces = true;  // false for an evaluation: weights are gathered, nothing is reduced
  std::function<Bytes(int unit)> gradient_bytes;  // of one device; empty: there is one replica
  std::function<Bytes(int unit)> weight_bytes;    // empty: 0
};

// Laws. Each unit of a device has one REDUCE_GRAD over the replica group, which waits for the last op that
// contributes to it and is issued before the compute op after that.
// Shared: the device's list begins with a GATHER_WEIGHTS for each unit, in the order of first use; the first
// op of each kind that uses it waits for it.
// Passing: a run is a row of consecutive actions of one stage. When a run begins, its stage and that of the
// next run are gathered; for the latter another one is released where two are there. So at most two are, and
// the first op of a run waits for the stage's gather. At the end all are released. The first op that
// contributes to a stage waits for all REDUCE_GRADs issued so far but the latest. The vocabulary's unit is
// gathered as if shared.
// Nothing else changes, and without gradient_bytes nothing at all.
Program add_replica_sync(const Program& program, const ReplicaSync& sync);

}  // namespace penstock::schedule
