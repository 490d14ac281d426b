// SPDX-License-Identifier: Apache-2.0
#include "sim/in_flight.h"

namespace penstock::sim {

InFlight count_in_flight(const schedule::DeviceProgram& device) {
  InFlightCount count;
  for (const schedule::Op& op : device.ops) count.add(op.kind);
  return count.peaks();
}

}  // namespace penstock::sim
