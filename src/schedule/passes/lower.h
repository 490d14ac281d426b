// SPDX-License-Identifier: Apache-2.0
// Lowers a schedule to the program that is simulated and trained: runs all passes in order. A new pass is
// called here and has its settings in Lowering.
#pragma once

#include "schedule/passes/exchange.h"
#include "schedule/passes/gradients.h"
#include "schedule/passes/offload.h"
#include "schedule/passes/shard.h"
#include "schedule/passes/transfers.h"
#include "schedule/passes/vocabulary.h"
#include "schedule/program.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

struct Lowering {
  OffloadBytes offload_bytes;    // empty: no offloading
  TransferBytes transfer_bytes;  // empty: transfers of 0 bytes
  VocabularySharding vocabulary;
  ContextExchange exchange;
  GradientSync gradients;  // not used under vocabulary parallelism, where each device has both sides
  ReplicaSync replicas;
  bool optimizer_step = true;
};

// The schedule must be legal (check). Throws the InputErrors of the passes.
Program lower(const Schedule& schedule, const Lowering& options = {});

}  // namespace penstock::schedule
