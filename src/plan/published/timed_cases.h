// SPDX-License-Identifier: Apache-2.0
// Rows of the timed tables as inputs of the cost model.
#pragma once

#include <string>

#include "plan/layout.h"
#include "plan/published/score.h"
#include "plan/published/table.h"
#include "plan/step_cost.h"

namespace penstock::plan {

// How a run differs from what its engine's file says.
struct EngineChanges {
  bool sequence_parallel = true;
  bool compiled = false;         // elementwise work is fused by a compiler or library
  bool fused_norms = false;      // no unfused passes
  bool cut_experts = false;      // by t, not whole
  bool looped_experts = false;   // no grouped products
  bool third_attention = false;  // FlashAttention 3
  bool direct_dispatch = false;  // as Engine's
  bool hidden_dispatch = false;  // expert traffic runs behind other work
  bool captured = false;         // layers with experts are launched as graphs
  double gradient_bytes = 0;     // 0: the engine's
};

struct TimedCase {
  Workload workload;
  Layout layout;
  std::string hardware;  // names of a hardware and an engine file
  std::string engine;
  EngineChanges changes;
  // Where the row says another than the hardware file; 0: the file's.
  double network_gbps = 0;  // a GPU's share
  std::int64_t node_gpus = 0;
};

// The engine as that run has it. Throws InputError where its name is not known.
sim::Engine engine_of(const TimedCase& timed, const KnownMachines& known);

// Seconds of a step. Throws InputError where a name is not known.
Seconds seconds_of(const TimedCase& timed, const KnownMachines& known);
StepCost cost_of(const TimedCase& timed, const KnownMachines& known);

// Of a table of one of the three kinds.
TimedCase timed_case(const Table& table, std::size_t row);

TimedCase kwai_timed_case(const Table& table, std::size_t row);
TimedCase calculon_case(const Table& table, std::size_t row);
TimedCase vtrain_case(const Table& table, std::size_t row);

}  // namespace penstock::plan
