// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/lower.h"

#include <gtest/gtest.h>

#include "schedule/passes/optimizer.h"
#include "schedule/program_examples.h"
#include "schedule/program_index.h"

namespace penstock::schedule {
namespace {

bool has_replicas(const Program& program) {
  const ProgramIndex index(program);
  for (int stage = 0; stage < program.stages; ++stage) {
    if (index.devices_of(stage).size() > 1) return true;
  }
  return false;
}

TEST(OptimizerStep, IsTheLastOpOfEveryDeviceAndNothingElseChanges) {
  for (const Schedule& schedule : example_schedules()) {
    const Program before = lower(schedule, {.optimizer_step = false});
    Program after = add_optimizer_step(before);
    for (DeviceProgram& device : after.devices) {
      ASSERT_EQ(device.ops.back().kind, OpKind::OptimizerStep);
      device.ops.pop_back();
    }
    EXPECT_EQ(after, before);
  }
}

TEST(GradientSync, TiedEmbeddingsAreReducedBetweenFirstAndLastStageOnceOnEachSide) {
  for (const Schedule& schedule : example_schedules()) {
    const Program before = lower(schedule, {.optimizer_step = false});
    if (has_replicas(before)) {
      EXPECT_THROW(add_gradient_sync(before, {true, 64}), InputError);
      continue;
    }
    const Program program = add_gradient_sync(before, {true, 64});
    const ProgramIndex index(before);
    const int first = index.devices_of(0).front(), last = index.devices_of(program.stages - 1).front();
    for (int device = 0; device < program.device_count(); ++device) {
      std::vector<Op> reductions(program.devices[device].ops.begin() + before.devices[device].ops.size(),
                                 program.devices[device].ops.end());
      ASSERT_EQ(reductions.size(), device == first || device == last ? 1u : 0u);
      if (reductions.empty()) continue;
      EXPECT_EQ(reductions[0].kind, OpKind::ReduceGradients);
      EXPECT_EQ(reductions[0].bytes, 64);
      EXPECT_EQ(reductions[0].key.stage, device == first ? 0 : program.stages - 1);
      EXPECT_EQ(reductions[0].peer, first == last ? -1 : first + last - device);
    }
  }
}

TEST(GradientSync, UntiedEmbeddingsNeedNothing) {
  const Program program = lower(generate("1f1b", request(2, 2)));
  EXPECT_EQ(add_gradient_sync(program, {}), program);
}

}  // namespace
}  // namespace penstock::schedule
