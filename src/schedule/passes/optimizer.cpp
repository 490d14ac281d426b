// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/optimizer.h"

#include <algorithm>

namespace penstock::schedule {
namespace {

bool is_on_collective_lane(const Op& op) { return lane_of(op.kind) == Lane::Collective; }

}  // namespace

Program add_optimizer_step(Program program) {
  for (DeviceProgram& device : program.devices) {
    const auto last = std::ranges::find_if(device.ops.rbegin(), device.ops.rend(), is_on_collective_lane);
    const auto place = static_cast<std::uint32_t>(device.ops.rend() - last) - 1;
    device.append({.kind = OpKind::OptimizerStep}, {&place, last == device.ops.rend() ? 0u : 1u});
  }
  return program;
}

}  // namespace penstock::schedule
