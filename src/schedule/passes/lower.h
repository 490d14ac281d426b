// SPDX-License-Identifier: Apache-2.0
// From a schedule to the program that is simulated and trained: all passes in their order. A new pass takes
// its place here and its settings in Lowering.
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
  OffloadBytes offload_bytes;    // empty: nothing leaves
  TransferBytes transfer_bytes;  // empty: transfers of 0 bytes
  VocabularySharding vocabulary;
  ContextExchange exchange;
  GradientSync gradients;  // of no use under vocabulary parallelism, where each device has both sides
  ReplicaSync replicas;
  bool optimizer_step = true;
};

// The schedule must be legal (check). Throws InputError as the passes do.
Program lower(const Schedule& schedule, const Lowering& options = {});

}  // namespace penstock::schedule
