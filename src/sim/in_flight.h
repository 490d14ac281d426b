// SPDX-License-Identifier: Apache-2.0
// How many slice-chunks a device has in flight. It depends only on the order, not on times.
#pragma once

#include <algorithm>

#include "schedule/program.h"

namespace penstock::sim {

struct InFlight {
  int peak = 0;              // F has run, B or W has not
  int peak_until_input = 0;  // F has run, B or I has not
};

class InFlightCount {
 public:
  // Counts the device's next op. Only actions have an effect.
  void add(schedule::OpKind kind) {
    using enum schedule::OpKind;
    if (kind == Forward) {
      peaks_.peak = std::max(peaks_.peak, ++held_);
      peaks_.peak_until_input = std::max(peaks_.peak_until_input, ++held_until_input_);
    }
    if (is_backward(kind)) --held_until_input_;
    if (adds_weight_gradients(kind)) --held_;
  }

  const InFlight& peaks() const { return peaks_; }

 private:
  InFlight peaks_;
  int held_ = 0;
  int held_until_input_ = 0;
};

InFlight count_in_flight(const schedule::DeviceProgram& device);

}  // namespace penstock::sim
