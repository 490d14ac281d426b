// SPDX-License-Identifier: Apache-2.0
// Input and output of the list scheduler.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "schedule/action.h"

namespace penstock::schedule {

// Whole micro-batches with split backwards; every device has one or two stages (its chunks).
struct ListProblem {
  int devices = 1;
  int micro_batches = 1;
  std::vector<int> home;                        // [stage] -> device
  std::vector<Seconds> forward, input, weight;  // [stage], finite, zero or more
  std::vector<Bytes> record;                    // [stage], held from F to W; zero or more
  Seconds transfer = 0;
  Bytes limit = 0;  // upper bound of a device's records in flight
};

// An action of a device without its micro-batch. Micro-batches ascend on every stage, so it is the number of
// earlier actions of this kind and chunk.
struct Step {
  enum Kind : std::uint8_t { Forward, Input, Weight };
  Kind kind : 4 = Forward;
  std::uint8_t chunk : 4 = 0;

  friend bool operator==(const Step&, const Step&) = default;
};
static_assert(sizeof(Step) == 1);

using StepRows = std::vector<std::vector<Step>>;  // [device]

// A shorter makespan is better; on a tie, less idle time within the devices' spans is better: then some
// device ends earlier or begins later, and the next training step may use that time.
struct ListResult {
  std::uint64_t makespan = 0;  // in ticks of the problem's clock (list_scheduler.h)
  std::uint64_t idle = 0;      // sum over devices, between a device's first and last action
  StepRows rows;
};

// Which action to take if several are ready, or if none is.
struct ListRule {
  enum class Prefer : std::uint8_t { Inputs, Forwards, Alternate };
  Prefer prefer = Prefer::Inputs;
  bool later_chunks_first = true;
  int overrun = 0;                  // index into kOverruns
  const StepRows* guide = nullptr;  // if set, F and I run in this order, whatever is ready
};

// A W may delay the next action by at most this fraction of its own duration.
inline constexpr double kOverruns[] = {0, 0.25, 0.5, 1};
inline constexpr int kOverrunCount = 4;

}  // namespace penstock::schedule
