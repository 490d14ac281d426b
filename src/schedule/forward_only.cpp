// SPDX-License-Identifier: Apache-2.0
#include "schedule/forward_only.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "schedule/placement.h"

namespace penstock::schedule {

Schedule forward_only(const Schedule& like, int micro_batches) {
  const Placement placement(like);
  PENSTOCK_CHECK(!placement.has_replicas(), "an evaluation runs each stage in one place");
  const int n = like.slices.front();
  Schedule schedule{.name = like.name + " evaluation",
                    .stages = like.stages,
                    .slices = std::vector<int>(static_cast<std::size_t>(micro_batches), n),
                    .devices = std::vector<std::vector<Action>>(like.devices.size())};
  const int items = micro_batches * n;
  const int group = like.device_count();
  for (int begin = 0; begin < items; begin += group) {
    for (int stage = 0; stage < like.stages; ++stage) {
      auto& row = schedule.devices[placement.device_of(stage, 0)];
      for (int item = begin; item < std::min(begin + group, items); ++item) {
        row.push_back(forward(stage, item / n, item % n));
      }
    }
  }
  return schedule;
}

Program with_back_pressure(const Program& evaluation) {
  const int n = evaluation.slices.front();
  const auto group_of = [&](const Op& op) {
    return (op.key.micro_batch * n + op.key.slice) / evaluation.device_count();
  };
  Program program = evaluation;
  for (DeviceProgram& list : program.devices) {
    const DeviceProgram given = std::exchange(list, {});
    std::vector<std::uint32_t> sends;  // of the current group
    int group = 0;
    for (std::uint32_t i = 0; i < given.ops.size(); ++i) {
      const Op& op = given.ops[i];
      const auto after = given.after_of(op);
      std::vector<std::uint32_t> waits(after.begin(), after.end());
      if (op.kind == OpKind::Forward && group_of(op) != group) {
        group = group_of(op);
        waits.insert(waits.end(), sends.begin(), sends.end());
        sends.clear();
      }
      if (op.kind == OpKind::SendForward) sends.push_back(i);
      list.append(op, waits);
    }
  }
  return program;
}

Schedule forwards_of(const Schedule& schedule) {
  Schedule forwards = schedule;
  forwards.name += " evaluation";
  for (std::vector<Action>& row : forwards.devices) {
    std::erase_if(row, [](const Action& action) { return action.kind != Kind::Forward; });
    for (Action& action : row) action.overlaps_next = false;
  }
  return forwards;
}

}  // namespace penstock::schedule
