// SPDX-License-Identifier: Apache-2.0
#include "sim/in_flight.h"

#include <algorithm>

namespace penstock::sim {

InFlight count_in_flight(const schedule::DeviceProgram& device) {
  InFlight result;
  int held = 0;
  int held_until_input = 0;
  for (const schedule::Op& op : device.ops) {
    if (op.kind == schedule::OpKind::Forward) ++held, ++held_until_input;
    result.peak = std::max(result.peak, held);
    result.peak_until_input = std::max(result.peak_until_input, held_until_input);
    if (is_backward(op.kind)) --held_until_input;
    if (op.kind == schedule::OpKind::Backward || op.kind == schedule::OpKind::BackwardWeight) --held;
  }
  return result;
}

}  // namespace penstock::sim
