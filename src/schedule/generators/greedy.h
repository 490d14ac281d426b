// SPDX-License-Identifier: Apache-2.0
// Greedy: a schedule made for given costs (Request::costs). Long context makes F, I and W unequal (attention
// has no weights), and patterns designed for F = I = W then leave bubbles. A list scheduler
// (list_scheduler.h) tries priority rules and every fixed pattern that fits the memory: first as it is, then
// its F and I with W placed anew in the bubbles. The result has the shortest makespan and, on a tie, the
// least idle time inside spans. So at these costs it is never slower than 1f1b, zb-h1 and zb-h2 (v = 1), or
// zb-v, v-half, v-min and dualpipe-v (v = 2, two stages per device in a V).
#pragma once

#include <string>

#include "schedule/generators/generator.h"

namespace penstock::schedule {

struct GreedySchedule {
  Schedule schedule;
  std::string pattern;        // the adopted pattern; empty if a priority rule was better
  bool weights_anew = false;  // the pattern's W were placed anew

  std::string origin() const;  // "zb-v", "zb-v, W anew" or "own rules"
};

// Unsliced. Throws InputError for times or sizes that are negative, not finite or of a wrong count
// (request.h), and for a limit below one micro-batch's need, with the least possible limit.
GreedySchedule make_greedy(const Request& request);

}  // namespace penstock::schedule
