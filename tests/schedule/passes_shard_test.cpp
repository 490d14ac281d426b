// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/shard.h"

#include <gtest/gtest.h>

#include <set>

#include "schedule/passes/lower.h"
#include "schedule/program_checks.h"
#include "schedule/program_examples.h"
#include "schedule/program_text.h"
#include "schedule/random_execution.h"

namespace penstock::schedule {
namespace {

ReplicaSync replicas(bool sharded) {
  return {.sharded = sharded,
          .gradient_bytes = [](int stage) { return Bytes{4 * (stage + 1)}; },
          .weight_bytes = [](int stage) { return Bytes{2 * (stage + 1)}; }};
}

bool is_added(const Op& op) { return op.group == mesh::Group::Replica; }

template <class Visit>
void for_examples(Visit visit) {
  for (const Schedule& schedule : example_schedules()) {
    const Program before = lower(schedule, {.optimizer_step = false});
    for (const bool sharded : {false, true})
      visit(before, add_replica_sync(before, replicas(sharded)), sharded);
  }
}

TEST(ReplicaSync, WithoutReplicasNothingChanges) {
  for (const Schedule& schedule : example_schedules()) {
    const Program before = lower(schedule);
    EXPECT_EQ(add_replica_sync(before, {.sharded = true}), before);
  }
}

TEST(ReplicaSync, EveryStageOfADeviceIsReducedOnceAndGatheredOnceAndTheRestIsAsBefore) {
  for_examples([](const Program& before, const Program& after, bool sharded) {
    for (int device = 0; device < after.device_count(); ++device) {
      std::multiset<int> reduced, gathered;
      std::set<int> stages;
      Program rest = after;
      for (std::uint32_t i = static_cast<std::uint32_t>(after.devices[device].ops.size()); i-- > 0;) {
        const Op& op = after.devices[device].ops[i];
        if (is_action(op.kind)) stages.insert(op.key.stage);
        if (!is_added(op)) continue;
        EXPECT_EQ(op.bytes, (op.kind == OpKind::ReduceGradients ? 4 : 2) * (op.key.stage + 1));
        (op.kind == OpKind::ReduceGradients ? reduced : gathered).insert(op.key.stage);
        rest = without(rest, device, i);
      }
      const std::multiset<int> each(stages.begin(), stages.end());
      EXPECT_EQ(reduced, each);
      EXPECT_EQ(gathered, sharded ? each : std::multiset<int>());
      EXPECT_EQ(rest.devices[device], before.devices[device]) << after.name;
    }
  });
}

TEST(ReplicaSync, GradientsAreReducedBeforeTheComputeAfterTheLastBackwardOfTheirStage) {
  for_examples([](const Program&, const Program& after, bool) {
    for (const DeviceProgram& device : after.devices) {
      for (std::uint32_t i = 0; i < device.ops.size(); ++i) {
        if (device.ops[i].kind != OpKind::ReduceGradients) continue;
        ASSERT_EQ(device.after_of(device.ops[i]).size(), 1u);
        const std::uint32_t last = device.after_of(device.ops[i])[0];
        EXPECT_EQ(device.ops[last].key.stage, device.ops[i].key.stage);
        for (std::uint32_t k = last + 1; k < i; ++k) EXPECT_NE(lane_of(device.ops[k].kind), Lane::Compute);
        for (std::uint32_t k = last + 1; k < device.ops.size(); ++k) {
          const bool computes = is_action(device.ops[k].kind);
          EXPECT_FALSE(computes && device.ops[k].key.stage == device.ops[i].key.stage && k > i);
        }
      }
    }
  });
}

TEST(ReplicaSync, GathersComeFirstInTheOrderOfUse) {
  for_examples([](const Program&, const Program& after, bool) {
    for (const DeviceProgram& device : after.devices) {
      std::vector<int> gathered, used;
      for (const Op& op : device.ops) {
        if (op.kind == OpKind::GatherWeights) gathered.push_back(op.key.stage);
        const bool first = op.kind == OpKind::Forward && std::ranges::count(used, op.key.stage) == 0;
        if (!first) continue;
        used.push_back(op.key.stage);
        for (const std::uint32_t wait : device.after_of(op)) {
          if (!is_collective(device.ops[wait].kind)) continue;
          EXPECT_EQ(device.ops[wait].key.stage, op.key.stage);
        }
      }
      if (gathered.empty()) continue;
      EXPECT_EQ(gathered, used);
    }
  });
}

TEST(ReplicaSync, LoweredProgramsAreLegalComeBackFromTextAndRunInAnyOrder) {
  std::uint32_t seed = 0;
  for (const Schedule& schedule : example_schedules()) {
    for (const bool sharded : {false, true}) {
      Lowering options{.replicas = replicas(sharded)};
      options.gradients.tied_embeddings = seed % 2 == 0 && schedule.name != "dualpipe";
      const Program program = lower(schedule, options);
      EXPECT_EQ(first_finding(program), "legal") << to_text(program);
      EXPECT_EQ(parse_program(to_text(program), "text"), program);
      if (++seed % 8 != 0) continue;
      EXPECT_EQ(RandomExecution(program, seed).run(), "") << schedule.name;
    }
  }
}

}  // namespace
}  // namespace penstock::schedule
