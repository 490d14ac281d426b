// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/messages.h"

#include "schedule/deliveries.h"

namespace penstock::sim {

std::vector<std::vector<Seconds>> departures(const schedule::Program& program,
                                             const schedule::Timeline& timeline) {
  std::vector<std::vector<Seconds>> by_op;
  for (const schedule::DeviceProgram& device : program.devices) by_op.emplace_back(device.ops.size());
  for (const schedule::Delivery& message : schedule::deliveries_of(program)) {
    by_op[message.destination][message.receive] = timeline.devices[message.source][message.send].start;
  }
  std::vector<std::vector<Seconds>> result(program.devices.size());
  for (int d = 0; d < program.device_count(); ++d) {
    const std::vector<schedule::Op>& ops = program.devices[d].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (is_receive(ops[i].kind)) result[d].push_back(by_op[d][i]);
    }
  }
  return result;
}

}  // namespace penstock::sim
