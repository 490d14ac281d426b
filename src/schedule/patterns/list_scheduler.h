// SPDX-License-Identifier: Apache-2.0
// A list scheduler in real time: whenever a device is free it takes the best action that is ready, and fills
// the time until the next one arrives with a W.
#pragma once

#include <optional>
#include <vector>

#include "base/units.h"
#include "schedule/patterns/phases.h"

namespace penstock::schedule {

// What is to be scheduled: split backwards of whole micro-batches.
struct ListProblem {
  int devices = 1;
  int micro_batches = 1;
  std::vector<int> home;                        // [stage] -> device
  std::vector<Seconds> forward, input, weight;  // [stage]
  std::vector<Bytes> record;                    // [stage], held from F to W
  Seconds transfer = 0;
  Bytes limit = 0;  // of the records that a device holds
};

// What is taken when several actions are ready, or when none is.
struct ListRule {
  enum class Prefer { Inputs, Forwards, Alternate };
  Prefer prefer = Prefer::Inputs;
  bool later_chunks_first = true;
  double overrun = 0;                         // a W may delay what comes next by this part of its own time
  const std::vector<Order>* guide = nullptr;  // then F and I run in this order, whatever is ready
  bool weights_in_place = false;              // and W too
};

struct ListResult {
  Seconds makespan = 0;
  Seconds spans = 0;  // sum over devices, from the first action's start to the last one's end
  std::vector<Order> rows;
};

// Nothing when the rule gets stuck (a guide that does not fit the limit). Micro-batches ascend on every
// stage.
std::optional<ListResult> list_schedule(const ListProblem& problem, const ListRule& rule);

}  // namespace penstock::schedule
