// SPDX-License-Identifier: Apache-2.0
// 1F1B, Narayanan et al. 2021. In flight: min(m, p-r). Bubble: (p-1)/(m + p-1) of the step.
#include "schedule/generators/catalogue.h"
#include "schedule/patterns/phases.h"

namespace penstock::schedule {

Schedule one_f_one_b(const Request& request) {
  Schedule schedule = empty_schedule(request, request.devices);
  const Units forwards = forward_units(request), backwards = backward_units(request);
  for (int rank = 0; rank < request.devices; ++rank) {
    const std::vector<int> stages{rank};
    schedule.devices[rank] = one_forward_one_backward(forward_order(one_group(forwards), stages),
                                                      backward_order(one_group(backwards), stages),
                                                      in_flight_targets(request, request.devices - rank - 1));
  }
  return schedule;
}

}  // namespace penstock::schedule
