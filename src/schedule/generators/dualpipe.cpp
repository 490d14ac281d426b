// SPDX-License-Identifier: Apache-2.0
// DualPipe, DeepSeek-V3 2024: every stage lives on two devices; the first half of the micro-batches enters at
// device 0, the second half at device p-1. In flight: min(m, p+1) chunks. Idle: (p/2-1)(F&B + B - 3W) for
// m >= 2p, where F&B is a forward overlapped with a backward.
#include "base/error.h"
#include "base/refusal.h"
#include "schedule/generators/catalogue.h"
#include "schedule/patterns/bidirectional.h"

namespace penstock::schedule {

Schedule dualpipe(const Request& request) {
  const int p = request.devices, m = request.micro_batches();
  if (p % 2 != 0) {
    throw InputError("dualpipe needs an even p, got " + std::to_string(p) + "; nearest " +
                     nearest_legal(p, p + 1, [](int other) { return other % 2 == 0; }));
  }
  const int there = (m + 1) / 2, back = m - there;
  Schedule schedule = empty_schedule(request, p);
  for (int rank = 0; rank < p; ++rank) {
    const int mirror = p - 1 - rank;
    const TwoChunks::Chunk down{rank, 0, there}, up{mirror, there, back};
    schedule.devices[rank] = rank < mirror ? bidirectional_order({down, up}, rank, p / 2, there)
                                           : bidirectional_order({up, down}, mirror, p / 2, there);
  }
  return schedule;
}

}  // namespace penstock::schedule
