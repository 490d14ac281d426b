// SPDX-License-Identifier: Apache-2.0
// Greedy: a schedule made for given costs (Request::costs). Long context makes F, I and W unequal (attention
// has no weights), and then patterns drawn for F = I = W leave bubbles. A list scheduler (list_scheduler.h)
// tries priority rules, and every fixed pattern that fits the memory: as it is, and its F and I with W
// filling the bubbles anew. The shortest of all is returned, of several the one with the shortest spans. So
// it is never slower than those patterns at these costs: 1f1b, zb-h1 and zb-h2 with one stage a device (v =
// 1), zb-v, v-half, v-min and dualpipe-v with two in a V (v = 2).
#pragma once

#include <string>

#include "schedule/generators/generator.h"

namespace penstock::schedule {

struct GreedySchedule {
  Schedule schedule;
  std::string pattern;        // that it adopted; empty: its own rules were better than all
  bool weights_anew = false;  // with its W moved

  std::string origin() const;  // "zb-v", "zb-v, W anew" or "own rules"
};

// Unsliced. Throws InputError for times or sizes that are negative, not finite, or another number than
// request.h says, and for a limit under which no micro-batch gets through, naming the least possible one.
GreedySchedule make_greedy(const Request& request);

}  // namespace penstock::schedule
