// SPDX-License-Identifier: Apache-2.0
// Greedy: a schedule made for given times. Long context makes F, I and W unequal (attention has no weights),
// and then patterns drawn for F = I = W leave bubbles. A list scheduler (list_scheduler.h) tries priority
// rules, and the F and I of every fixed pattern that fits the memory, with W filling the bubbles anew and as
// the pattern has them; the shortest of all is returned, of several the one with the shortest spans. So it is
// never slower than those patterns at these times.
#pragma once

#include <vector>

#include "base/units.h"
#include "schedule/generators/generator.h"

namespace penstock::schedule {

enum class Placing {
  Even,  // one stage a device
  V,     // two: down the devices and back up
};

struct GreedyOptions {
  Placing placing = Placing::V;
  // Of each stage, S = p or 2p in all; empty: 1 second each.
  std::vector<Seconds> forward, input, weight;
  Seconds transfer = 0;  // a pure delay between devices
  // What a device may hold from F to W: the sum of its records' sizes. Sizes are of each stage; empty: 1
  // each, so that the limit counts records. Limit 0: as much as 1F1B holds, p records (2p in a V).
  std::vector<Bytes> record;
  Bytes limit = 0;
};

// Unsliced; request.chunks is not looked at. Throws InputError for times or sizes that are negative, not
// finite, or not one for each stage, and for a limit under which no micro-batch gets through.
Schedule greedy(const Request& request, const GreedyOptions& options);

}  // namespace penstock::schedule
