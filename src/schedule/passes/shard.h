// SPDX-License-Identifier: Apache-2.0
// Adds the collectives of replicas that share one batch (docs/mesh.md, "Replicas"): gradients are reduced
// once per step; weights are gathered if the states are sharded (ZeRO, Rajbhandari et al., SC'20).
#pragma once

#include <cstdint>
#include <functional>

#include "base/units.h"
#include "schedule/program.h"
#include "schedule/units.h"

namespace penstock::schedule {

// Which of the states each replica keeps.
enum class ReplicaStates : std::uint8_t {
  Whole,   // all: gradients are all-reduced (ZeRO stage 0)
  Shared,  // master weights and moments of its shard (stage 1)
  Passing  // weights and gradients of its shard too; whole ones exist only while in use (stage 3)
};

struct ReplicaSync {
  ReplicaStates states = ReplicaStates::Whole;
  bool reduces = true;  // false for an evaluation: weights are gathered, nothing is reduced
  std::function<Bytes(int unit)> gradient_bytes;  // per device; empty: there is one replica
  std::function<Bytes(int unit)> weight_bytes;    // empty: 0
};

// Laws. Each unit of a device has one REDUCE_GRAD over the replica group. It waits for the last op that
// contributes to the unit and is issued before the next compute op.
// Shared: the device's list begins with one GATHER_WEIGHTS per unit, the vocabulary's first, then stages in
// order of first use; on each lane the first op that uses the unit waits for it.
// Passing: a run is a sequence of consecutive actions of one stage. At the start of a run, its stage and the
// next run's stage are gathered; if two others are gathered already, one is released first. So at most two
// are gathered, and the first op of a run waits for its stage's gather. At the end all are released. The
// first op that contributes to a stage waits for all REDUCE_GRADs issued so far except the latest. The
// vocabulary's unit is gathered as under Shared.
// Nothing else changes; with empty gradient_bytes the program is unchanged.
Program add_replica_sync(const Program& program, const ReplicaSync& sync);

}  // namespace penstock::schedule
