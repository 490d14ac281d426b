// SPDX-License-Identifier: Apache-2.0
// Rows of the timed tables as inputs of the cost model.
#pragma once

#include <string>

#include "plan/layout.h"
#include "plan/published/score.h"
#include "plan/published/table.h"
#include "plan/step_cost.h"

namespace penstock::plan {

// How a run differs from its engine file.
struct EngineChanges {
  bool sequence_parallel = true;
  bool compiled = false;         // elementwise work is fused by a compiler or library
  bool fused_norms = false;      // no unfused passes
  bool cut_experts = false;      // split over tensor ranks
  bool looped_experts = false;   // no grouped matrix products
  bool third_attention = false;  // FlashAttention 3
  bool direct_dispatch = false;  // as Engine::direct_dispatch
  bool hidden_dispatch = false;  // expert traffic runs behind other work
  bool captured = false;         // layers with experts run as CUDA graphs
  double gradient_bytes = 0;     // 0: the engine's
};

struct TimedCase {
  Workload workload;
  Layout layout;
  std::string hardware;  // names of a hardware and an engine file
  std::string engine;
  EngineChanges changes;
  // Values of the row that override the hardware file; 0: the file's.
  double network_gbps = 0;  // GB/s per GPU
  std::int64_t node_gpus = 0;
};

// The engine with the changes of that run. Throws InputError for an unknown name.
sim::Engine engine_of(const TimedCase& timed, const KnownMachines& known);

// Seconds per step. Throw InputError for an unknown name.
Seconds seconds_of(const TimedCase& timed, const KnownMachines& known);
StepCost cost_of(const TimedCase& timed, const KnownMachines& known);

// For a table in any of the three formats below.
TimedCase timed_case(const Table& table, std::size_t row);

TimedCase kwai_timed_case(const Table& table, std::size_t row);
TimedCase calculon_case(const Table& table, std::size_t row);
TimedCase vtrain_case(const Table& table, std::size_t row);

}  // namespace penstock::plan
