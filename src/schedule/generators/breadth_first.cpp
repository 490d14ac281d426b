// SPDX-License-Identifier: Apache-2.0
// Breadth-first (looped), Lamy-Poirier 2023: all micro-batches run through the first chunk, then the second,
// and so on; backwards start at the last chunk. In flight: m·v. Bubble: (p-1)/(m·v + p-1) of the step for
// m >= p.
#include "schedule/generators/catalogue.h"
#include "schedule/patterns/phases.h"

namespace penstock::schedule {

Schedule breadth_first(const Request& request) {
  const int p = request.devices, v = request.chunks;
  Schedule schedule = empty_schedule(request, p * v);
  const Units forwards = forward_units(request), backwards = backward_units(request);
  for (int rank = 0; rank < p; ++rank) {
    const std::vector<int> stages = looped_stages(rank, p, v);
    schedule.devices[rank] = all_forwards_first(forward_order(one_group(forwards), stages),
                                                backward_order(one_group(backwards), stages));
  }
  return schedule;
}

}  // namespace penstock::schedule
