// SPDX-License-Identifier: Apache-2.0
#include "schedule/patterns/bidirectional.h"

#include <algorithm>

namespace penstock::schedule {

namespace {

constexpr int kInward = 0, kOutward = 1;

// Phases 1-3: forwards fill the device; the first outward backwards start, each W at once.
void warm_up(TwoChunks& device, int rank, int to_turn) {
  for (int i = 0; i < 2 * to_turn; ++i) device.forward(kInward);
  for (int i = 0; i < rank + 1; ++i) {
    device.forward(kInward);
    device.forward(kOutward);
  }
  for (int i = 0; i < to_turn; ++i) {
    device.backward_input(kOutward);
    device.backward_weight();
    device.forward(kOutward);
  }
}

// Phase 4: pairs of a forward and a backward, streams alternating. Phase 5: no inward forwards are left.
void steady_phase(TwoChunks& device, int rounds, int to_turn) {
  for (int i = 0; i < rounds; ++i) {
    const bool wait_for_neither =
        i == 0 && to_turn == 0;  // as a pair, both would wait for the later of their inputs
    if (wait_for_neither) {
      device.forward(kInward);
      device.backward(kOutward);
    } else {
      device.overlap(kInward, kOutward);
    }
    device.overlap(kOutward, kInward);
  }
  for (int i = 0; i < to_turn; ++i) {
    device.backward(kOutward);
    device.overlap(kOutward, kInward);
  }
}

// Phase 6: backwards, first whole, then with W pending. Phase 7: W fill the bubbles. Phase 8: the remaining
// W.
void cool_down(TwoChunks& device, int rank, int to_turn) {
  for (int i = 0; i < 2 * (rank + 1); ++i) {
    const int chunk = i % 2 == 0 ? kOutward : kInward;
    if (i <= rank) {
      device.backward(chunk);
    } else {
      device.backward_input(chunk);
    }
  }
  for (int i = 0; i < to_turn; ++i) {
    device.backward_weight();
    device.backward_input(kInward);
  }
  while (device.owes_weights()) device.backward_weight();
}

}  // namespace

Order bidirectional_order(TwoChunks device, int rank, int depth, int micro_batches) {
  const int to_turn = depth - rank - 1;
  const int enough = std::max(micro_batches, 2 * depth);
  warm_up(device, rank, to_turn);
  steady_phase(device, enough - 2 * depth + rank + 1, to_turn);
  cool_down(device, rank, to_turn);
  return device.take();
}

}  // namespace penstock::schedule
