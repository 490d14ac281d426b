// SPDX-License-Identifier: Apache-2.0
// Adds the collectives of replicas that share one batch: gradients are reduced over them once per step, and
// sharded states (ZeRO stage 1; Rajbhandari et al., SC'20) give the weights back by a gather.
#pragma once

#include <functional>

#include "base/units.h"
#include "schedule/program.h"

namespace penstock::schedule {

struct ReplicaSync {
  bool sharded = false;  // each replica steps its share of the parameters and gathers the weights
  std::function<Bytes(int stage)> gradient_bytes;  // of one device; empty: there is one replica
  std::function<Bytes(int stage)> weight_bytes;    // empty: 0
};

// Law: each stage of a device has one REDUCE_GRAD over the replica group, which waits for the stage's last B
// or W there and is issued before the compute op after it. When sharded, the device's list begins with one
// GATHER_WEIGHTS over the replica group for each of its stages, in the order of their first F, which waits
// for it. Nothing else changes, and without gradient_bytes nothing at all.
Program add_replica_sync(const Program& program, const ReplicaSync& sync);

}  // namespace penstock::schedule
