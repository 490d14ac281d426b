// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/gradients.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/program_index.h"

namespace penstock::schedule {
namespace {

int only_device_of(const ProgramIndex& index, const Program& program, int stage) {
  const std::vector<int>& homes = index.devices_of(stage);
  PENSTOCK_CHECK(!homes.empty(), "every stage runs somewhere: check() the program first");
  if (homes.size() == 1) return homes.front();
  throw InputError("tied embeddings: stage " + std::to_string(stage) + " of " + program.name + " lives on " +
                   std::to_string(homes.size()) +
                   " devices; use untied embeddings or a schedule without replicas");
}

// Appends the op after all compute of the device; it waits for the last compute op.
void append(DeviceProgram& device, const Op& reduce) {
  const auto last = std::find_if(device.ops.rbegin(), device.ops.rend(),
                                 [](const Op& op) { return lane_of(op.kind) == Lane::Compute; });
  const auto place = static_cast<std::uint32_t>(device.ops.rend() - last) - 1;
  device.append(reduce, {&place, last == device.ops.rend() ? 0u : 1u});
}

}  // namespace

Program add_gradient_sync(Program program, const GradientSync& sync) {
  if (!sync.tied_embeddings) return program;
  const ProgramIndex index(program);
  const int last_stage = program.stages - 1;
  const int first = only_device_of(index, program, 0);
  const int last = only_device_of(index, program, last_stage);
  Op reduce{.kind = OpKind::ReduceGradients, .bytes = sync.tied_bytes};
  if (first != last) reduce.peer = last;
  append(program.devices[first], reduce);
  if (first == last) return program;
  reduce.key.stage = last_stage;
  reduce.peer = first;
  append(program.devices[last], reduce);
  return program;
}

}  // namespace penstock::schedule
