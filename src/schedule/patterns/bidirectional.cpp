// SPDX-License-Identifier: Apache-2.0
#include "schedule/patterns/bidirectional.h"

#include <algorithm>

namespace penstock::schedule {

namespace {

constexpr int kInward = 0, kOutward = 1;

// 1.-3. Forwards fill the device; the first outward backwards start, their W at once.
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

// 4. Pairs of a forward and a backward, the streams in turn. 5. The inward forwards have run out.
void steady_phase(TwoChunks& device, int rounds, int to_turn) {
  for (int i = 0; i < rounds; ++i) {
    const bool wait_for_neither =
        i == 0 && to_turn == 0;  // together they would wait for the slower one's input
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

// 6. Backwards, whole at first and then with their W owed. 7. W fill what would be bubbles. 8. The rest of
// the W.
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
