// SPDX-License-Identifier: Apache-2.0
// DualPipeV: DualPipe (DeepSeek-V3 2024) cut in half, so that every stage lives on one device: one stream
// turns at the last device. In flight: min(2m, 2p+1) chunks. Idle at unit times: at most 2(p-1) for m >= 2p.
#include "schedule/generators/catalogue.h"
#include "schedule/patterns/bidirectional.h"

namespace penstock::schedule {

Schedule dualpipe_v(const Request& request) {
  const int p = request.devices, m = request.micro_batches();
  Schedule schedule = empty_schedule(request, 2 * p);
  for (int rank = 0; rank < p; ++rank) {
    schedule.devices[rank] = bidirectional_order(v_shape(rank, p, m), rank, p, m);
  }
  return schedule;
}

}  // namespace penstock::schedule
