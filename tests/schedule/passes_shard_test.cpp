// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/shard.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "schedule/passes/lower.h"
#include "schedule/program_checks.h"
#include "schedule/program_examples.h"
#include "schedule/program_text.h"
#include "schedule/random_execution.h"

namespace penstock::schedule {
namespace {

constexpr ReplicaSharding kShardings[] = {ReplicaSharding::None, ReplicaSharding::Optimizer,
                                          ReplicaSharding::Weights};

ReplicaSync replicas(ReplicaSharding sharding) {
  return {.sharding = sharding,
          .gradient_bytes = [](int stage) { return Bytes{4 * (stage + 1)}; },
          .weight_bytes = [](int stage) { return Bytes{2 * (stage + 1)}; }};
}

bool is_added(const Op& op) { return op.group == mesh::Group::Replica; }

template <class Visit>
void for_examples(Visit visit) {
  for (const Schedule& schedule : example_schedules()) {
    const Program before = lower(schedule, {.optimizer_step = false});
    for (const ReplicaSharding sharding : kShardings)
      visit(before, add_replica_sync(before, replicas(sharding)), sharding);
  }
}

TEST(ReplicaSync, WithoutReplicasNothingChanges) {
  for (const Schedule& schedule : example_schedules()) {
    const Program before = lower(schedule);
    EXPECT_EQ(add_replica_sync(before, {.sharding = ReplicaSharding::Weights}), before);
  }
}

TEST(ReplicaSync, EveryStageOfADeviceIsReducedOnceAndGatheredOnceAndTheRestIsAsBefore) {
  for_examples([](const Program& before, const Program& after, ReplicaSharding sharding) {
    for (int device = 0; device < after.device_count(); ++device) {
      std::multiset<int> reduced, gathered, released;
      std::set<int> stages;
      Program rest = after;
      for (std::uint32_t i = static_cast<std::uint32_t>(after.devices[device].ops.size()); i-- > 0;) {
        const Op& op = after.devices[device].ops[i];
        if (is_action(op.kind)) stages.insert(op.key.stage);
        if (!is_added(op)) continue;
        const bool releases = op.kind == OpKind::ReleaseWeights, reduces = op.kind == OpKind::ReduceGradients;
        EXPECT_EQ(op.bytes, releases ? 0 : (reduces ? 4 : 2) * (op.key.stage + 1));
        (releases ? released : reduces ? reduced : gathered).insert(op.key.stage);
        rest = without(rest, device, i);
      }
      const std::multiset<int> each(stages.begin(), stages.end());
      EXPECT_EQ(reduced, each);
      if (sharding != ReplicaSharding::Weights) {
        EXPECT_EQ(gathered, sharding == ReplicaSharding::Optimizer ? each : std::multiset<int>());
      }
      EXPECT_EQ(released, sharding == ReplicaSharding::Weights ? gathered : std::multiset<int>());
      EXPECT_EQ(rest.devices[device], before.devices[device]) << after.name;
    }
  });
}

TEST(ReplicaSync, GradientsAreReducedBeforeTheComputeAfterTheLastBackwardOfTheirStage) {
  for_examples([](const Program&, const Program& after, ReplicaSharding) {
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
  for_examples([](const Program&, const Program& after, ReplicaSharding sharding) {
    if (sharding == ReplicaSharding::Weights) return;
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

// How often a stage is gathered, and the most that are there at a time.
struct Passing {
  std::map<int, int> gathers;
  std::size_t most = 0;
};

Passing passing_of(const DeviceProgram& device) {
  Passing passing;
  std::set<int> here;
  for (const Op& op : device.ops) {
    if (op.kind == OpKind::GatherWeights) {
      EXPECT_TRUE(here.insert(op.key.stage).second);
      ++passing.gathers[op.key.stage];
    }
    if (op.kind == OpKind::ReleaseWeights) {
      EXPECT_EQ(here.erase(op.key.stage), 1u);
    }
    if (is_action(op.kind)) {
      EXPECT_TRUE(here.contains(op.key.stage));
    }
    passing.most = std::max(passing.most, here.size());
  }
  EXPECT_TRUE(here.empty());
  return passing;
}

TEST(ReplicaSync, PassingWeightsAreThereForTwoStagesAtATime) {
  for_examples([](const Program&, const Program& after, ReplicaSharding sharding) {
    if (sharding != ReplicaSharding::Weights) return;
    for (const DeviceProgram& device : after.devices) EXPECT_LE(passing_of(device).most, 2u) << after.name;
  });
}

TEST(ReplicaSync, BreadthFirstGathersEachStageTwiceAndDepthFirstForEveryMicroBatch) {
  constexpr int m = 8, v = 4;
  const auto gathers = [&](const char* name) {
    const Program program =
        lower(generate(name, request(2, m, 1, v)), {.replicas = replicas(ReplicaSharding::Weights)});
    int sum = 0;
    for (const auto& [stage, count] : passing_of(program.devices[0]).gathers) sum += count;
    return sum;
  };
  EXPECT_LE(gathers("breadth-first"), 2 * v);
  EXPECT_GT(gathers("interleaved"), 2 * v);
}

TEST(ReplicaSync, OfTheShardedVocabularyIsAUnitOfItsOwn) {
  for (const ReplicaSharding sharding : kShardings) {
    Lowering options{.replicas = replicas(sharding)};
    options.vocabulary.parallel = true;
    const Program program = lower(generate("slimpipe", request(3, 2, 4, 2)), options);
    EXPECT_EQ(first_finding(program), "legal") << to_text(program);
    EXPECT_EQ(parse_program(to_text(program), "text"), program);
    for (const DeviceProgram& device : program.devices) {
      const auto count = [&](OpKind kind) {
        return std::ranges::count_if(device.ops, [&](const Op& op) {
          return op.kind == kind && op.key.stage == vocabulary_unit(program);
        });
      };
      EXPECT_EQ(count(OpKind::ReduceGradients), 1);
      EXPECT_EQ(count(OpKind::GatherWeights), sharding == ReplicaSharding::None ? 0 : 1);
    }
    EXPECT_EQ(RandomExecution(program, 7).run(), "");
  }
}

TEST(ReplicaSync, LoweredProgramsAreLegalComeBackFromTextAndRunInAnyOrder) {
  std::uint32_t seed = 0;
  for (const Schedule& schedule : example_schedules()) {
    for (const ReplicaSharding sharding : kShardings) {
      Lowering options{.replicas = replicas(sharding)};
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
