// SPDX-License-Identifier: Apache-2.0
// GPipe, Huang et al. 2019. In flight: m. Bubble: (p-1)/(m + p-1) of the step.
#include "schedule/generators/catalogue.h"
#include "schedule/patterns/phases.h"

namespace penstock::schedule {

Schedule gpipe(const Request& request) {
  Schedule schedule = empty_schedule(request, request.devices);
  const Units forwards = forward_units(request), backwards = backward_units(request);
  for (int rank = 0; rank < request.devices; ++rank) {
    const std::vector<int> stages{rank};
    schedule.devices[rank] = all_forwards_first(forward_order(one_group(forwards), stages),
                                                backward_order(one_group(backwards), stages));
  }
  return schedule;
}

}  // namespace penstock::schedule
