// SPDX-License-Identifier: Apache-2.0
// ZB-V, Qi et al. 2024 (controllable memory). In flight until W: min(2m, 2p) chunks on every device. Idle
// within a device's span at F = I = W: 2·max(0, 2p-1-m).
#include <algorithm>

#include "schedule/generators/catalogue.h"
#include "schedule/patterns/two_chunks.h"

namespace penstock::schedule {

namespace {

constexpr int kDown = 0, kUp = 1;  // the chunks of the V

Order device_order(int rank, int p, int m) {
  const int enough = std::max(m, 2 * p - 1);
  TwoChunks device = v_shape(rank, p, m);
  // 1. Warm-up: forwards down the V until the first micro-batch comes back up.
  for (int i = 0; i < 2 * (p - rank) - 1; ++i) device.forward(kDown);
  for (int i = 0; i < rank; ++i) {
    device.forward(kUp);
    device.forward(kDown);
  }
  for (int i = 0; i < p - rank; ++i) {
    device.forward(kUp);
    device.backward_input(kUp);
    device.backward_weight();
  }
  // 2. Steady state: F, I, W of one chunk, then of the other.
  while (device.forwards(kUp) < enough) {
    if (device.forwards(kDown) < enough) device.forward(kDown);
    device.backward_input(kDown);
    device.backward_weight();
    device.forward(kUp);
    device.backward_input(kUp);
    device.backward_weight();
  }
  // 3. Cool-down: each I at once, each W where it does not delay another device.
  for (int i = 0; i < rank; ++i) {
    device.backward_input(kDown);
    device.backward_input(kUp);
  }
  for (int i = 0; i < p - rank; ++i) {
    device.backward_input(kDown);
    device.backward_weight();
  }
  while (device.owes_weights()) device.backward_weight();
  return device.take();
}

}  // namespace

Schedule zb_v(const Request& request) {
  Schedule schedule = empty_schedule(request, 2 * request.devices);
  for (int rank = 0; rank < request.devices; ++rank) {
    schedule.devices[rank] = device_order(rank, request.devices, request.micro_batches());
  }
  return schedule;
}

}  // namespace penstock::schedule
