// SPDX-License-Identifier: Apache-2.0
#include "schedule/patterns/zero_bubble.h"

#include "schedule/patterns/phases.h"

namespace penstock::schedule {

Schedule zero_bubble(const Request& request, int lead) {
  const int p = request.devices;
  Schedule schedule = empty_schedule(request, p);
  const Units forwards = forward_units(request), backwards = backward_units(request);
  for (int rank = 0; rank < p; ++rank) {
    const std::vector<int> stages{rank};
    const Order whole = one_forward_one_backward(forward_order(one_group(forwards), stages),
                                                 backward_order(one_group(backwards), stages),
                                                 in_flight_targets(request, lead * (p - rank - 1)));
    schedule.devices[rank] = split_backwards(whole, lead * rank);
  }
  return schedule;
}

}  // namespace penstock::schedule
