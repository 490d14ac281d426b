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

// What is sharded over replicas.
enum class ReplicaSharding : std::uint8_t {
  None,       // nothing: gradients are all-reduced (ZeRO stage 0)
  Optimizer,  // master weights and moments (stage 1)
  Weights     // also weights and gradients; whole ones exist only while in use (stage 3, FSDP)
};

struct ReplicaSync {
  ReplicaSharding sharding = ReplicaSharding::None;
  bool reduces = true;  // false for an evaluation: weights are gathered, nothing is reduced
  std::function<Bytes(int unit)> gradient_bytes;  // per device; empty: there is one replica
  std::function<Bytes(int unit)> weight_bytes;    // empty: 0
};

// Laws. Each unit of a device has one REDUCE_GRAD over the replica group. It waits for the last op that
// contributes to the unit and is issued before the next compute op.
// Optimizer: the device's list begins with one GATHER_WEIGHTS per unit, the vocabulary's first, then stages
// in order of first use; on each lane the first op that uses the unit waits for it.
// Weights: a series is a sequence of consecutive actions of one stage. At the start of a series, its stage
// and the next series' stage are gathered; if two others are gathered already, one is released first. So at
// most two are gathered, and the first op of a series waits for its stage's gather. At the end all are
// released. The first op that contributes to a stage waits for all REDUCE_GRADs issued so far except the
// latest. The vocabulary's unit is gathered as under Optimizer.
//
// Nothing else changes; with empty gradient_bytes the program is unchanged.
Program add_replica_sync(const Program& program, const ReplicaSync& sync);

}  // namespace penstock::schedule
