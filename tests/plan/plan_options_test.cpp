// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_options.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "documented.h"
#include "failure.h"

namespace penstock::plan {
namespace {

TEST(PlanOptions, AreWhatTheDocumentationShows) { expect_documented("plan_options.md", options_markdown()); }

TEST(PlanOptions, AnExpertLoadIsOneThatTheModelCanHave) {
  PlanOptions options;
  options.workload = {.seq_len = 4096, .global_batch = 8, .expert_load = 1.5};
  options.model.name = "llama-7b";
  const auto said = [&] { return failure<InputError>([&] { workload_of(options); }); };
  EXPECT_NE(said().find("workload.expert_load = 1.5: the model is dense"), std::string::npos) << said();
  options.model.name = "mixtral-8x7b";
  EXPECT_EQ(workload_of(options).expert_load, 1.5);
  options.workload.expert_load = 4.5;
  EXPECT_NE(said().find("expected at most 4.0"), std::string::npos) << said();
}

// Their product is 2^64.
TEST(PlanOptions, ALayoutOfOtherDevicesIsRefusedWithItsSizes) {
  PlanOptions options;
  options.model.name = "llama-7b";
  options.workload = {.seq_len = 4096, .global_batch = 8};
  options.cluster.gpus = 1;
  options.layout = {.tp = 1 << 20, .cp = 1 << 20, .pp = 1 << 20, .dp = 16};
  sim::Hardware hardware = sim::assumed_hardware();
  hardware.device.memory_gb = 80;
  const Cluster cluster = cluster_of(options, hardware);
  const std::string said = failure<InputError>([&] { layout_of(options, workload_of(options), cluster); });
  EXPECT_NE(said.find("1048576·1048576·1048576·16 devices; cluster.gpus = 1"), std::string::npos) << said;
}

TEST(PlanOptions, ALayoutsGroupIsOneThatTheScheduleTakes) {
  PlanOptions options;
  options.model.name = "llama-7b";
  options.workload = {.seq_len = 32768, .global_batch = 8};
  options.cluster.gpus = 4;
  options.layout = {.pp = 4, .chunks = 2, .slices = 32, .group = 16};
  sim::Hardware hardware = sim::assumed_hardware();
  hardware.device.memory_gb = 80;
  const Cluster cluster = cluster_of(options, hardware);
  const auto layout = [&] { return layout_of(options, workload_of(options), cluster); };
  EXPECT_EQ(layout().group, 16);
  for (const int group : {2, 5, 64}) {
    options.layout.group = group;
    EXPECT_THROW(layout(), InputError) << group;
  }
  options.layout.group = 16;
  options.layout.schedule = "seq1f1b-interleaved";
  EXPECT_THROW(layout(), InputError) << "has no groups";
}

TEST(PlanOptions, AValueOfTheSearchThatIsGivenTwiceCountsOnce) {
  PlanOptions options;
  options.search.pp = {8, 4, 8, 8};
  options.search.schedules = {"1f1b", "slimpipe", "1f1b"};
  options.search.vocabulary_parallel = {"on", "on"};
  const SearchSpace space = space_of(options);
  EXPECT_EQ(space.pipeline, (std::vector{8, 4}));
  EXPECT_EQ(space.schedules, (std::vector{ScheduleKind::OneFOneB, ScheduleKind::SlimPipe}));
  EXPECT_EQ(space.vocabulary_parallel, std::vector{true});
}

}  // namespace
}  // namespace penstock::plan
