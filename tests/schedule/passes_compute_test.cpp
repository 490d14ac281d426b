// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/compute.h"

#include <gtest/gtest.h>

#include "schedule/program_examples.h"

namespace penstock::schedule {
namespace {

TEST(ComputeOnly, KeepsEachDevicesComputeActionsInOrder) {
  for (const Schedule& schedule : example_schedules()) {
    const Program program = compute_only(schedule);
    ASSERT_EQ(program.slices, schedule.slices);
    ASSERT_EQ(program.stages, schedule.stages);
    for (int device = 0; device < schedule.device_count(); ++device) {
      std::size_t next = 0;
      for (const Action& action : schedule.devices[device]) {
        if (!is_compute(action.kind)) continue;
        const Op& op = program.devices[device].ops.at(next++);
        EXPECT_EQ(std::tie(op.key.stage, op.key.micro_batch, op.key.slice),
                  std::tie(action.key.stage, action.key.micro_batch, action.key.slice));
      }
      EXPECT_EQ(next, program.devices[device].ops.size());
    }
  }
}

TEST(ComputeOnly, DropsIdleAndReduceGradientsAndFlattensPairs) {
  Action first = forward(0, 1);
  first.overlaps_next = true;
  const Action reduce{.kind = Kind::ReduceGradients};
  const Schedule schedule{"pair", 1, {1, 1}, {{forward(0, 0), Action{}, first, backward(0, 0), reduce}}};
  const std::vector<Op> ops = compute_only(schedule).devices[0].ops;
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(ops[1].kind, OpKind::Forward);
  EXPECT_EQ(ops[2].kind, OpKind::Backward);
}

}  // namespace
}  // namespace penstock::schedule
