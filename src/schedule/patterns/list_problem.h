// SPDX-License-Identifier: Apache-2.0
// What a list scheduler is given, and what it returns.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "schedule/action.h"

namespace penstock::schedule {

// Split backwards of whole micro-batches, in stages of which every device has one or two (its chunks).
struct ListProblem {
  int devices = 1;
  int micro_batches = 1;
  std::vector<int> home;                        // [stage] -> device
  std::vector<Seconds> forward, input, weight;  // [stage], finite, zero or more
  std::vector<Bytes> record;                    // [stage], held from F to W; zero or more
  Seconds transfer = 0;
  Bytes limit = 0;  // of the records that a device holds
};

// An action of a device without its micro-batch, which is the number of actions of this kind and chunk before
// it: on every stage micro-batches ascend.
struct Step {
  enum Kind : std::uint8_t { Forward, Input, Weight };
  Kind kind : 4 = Forward;
  std::uint8_t chunk : 4 = 0;

  friend bool operator==(const Step&, const Step&) = default;
};
static_assert(sizeof(Step) == 1);

using StepRows = std::vector<std::vector<Step>>;  // of each device

// Of schedules of one problem the shorter one is the better; of equally long ones that with less idle time
// within the devices' spans, which ends earlier or begins later on some device: the next step may use the
// corners.
struct ListResult {
  std::uint64_t makespan = 0;  // in ticks of the problem's clock (list_scheduler.h)
  std::uint64_t idle = 0;      // of all devices, between their own first and last actions
  StepRows rows;
};

// What is taken when several actions are ready, or when none is.
struct ListRule {
  enum class Prefer : std::uint8_t { Inputs, Forwards, Alternate };
  Prefer prefer = Prefer::Inputs;
  bool later_chunks_first = true;
  int overrun = 0;                  // index of kOverruns
  const StepRows* guide = nullptr;  // then F and I run in this order, whatever is ready
};

// A W may delay what comes next by so much of its own time.
inline constexpr double kOverruns[] = {0, 0.25, 0.5, 1};
inline constexpr int kOverrunCount = 4;

}  // namespace penstock::schedule
