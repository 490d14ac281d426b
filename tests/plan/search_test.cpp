// SPDX-License-Identifier: Apache-2.0
#include "plan/search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "plan/enumerate.h"
#include "plan/host_memory.h"
#include "plan/plan_print.h"
#include "questions.h"

namespace penstock::plan {
namespace {

// A small space, for comparing with a plain walk through all of it.
SearchSpace small_space() {
  SearchSpace space;
  space.tensor = {1, 2, 4, 8, 16};
  space.context = {1, 2};
  space.expert = {1};
  space.pipeline = {1, 2, 4, 5};
  space.chunks = {1, 2, 5};
  space.slices = {1, 4, 20};  // 20 has groups on 5 devices
  space.micro_batch = {1, 2};
  return space;
}

template <class Visit>
void for_each_layout(const Workload& w, const Cluster& on, const SearchSpace& space, Visit visit) {
  for (const int t : space.tensor)
    for (const int c : space.context)
      for (const int p : space.pipeline) {
        if (on.gpus % (t * c * p) != 0) continue;
        for (const int b : space.micro_batch)
          for (const auto schedule : space.schedules)
            for (const int v : space.chunks)
              for (const int n : space.slices)
                for (const bool vocabulary : space.vocabulary_parallel)
                  for (const auto exchange : space.exchanges)
                    for (const auto policy : space.policies) {
                      Layout layout;
                      layout.mesh = {t, c, 1, static_cast<int>(on.gpus / (t * c * p)), p};
                      layout.schedule = schedule;
                      layout.micro_batch = b;
                      layout.slices = n;
                      layout.chunks = v;
                      layout.keep = model::keep_of(policy);
                      layout.vocabulary_parallel = vocabulary;
                      layout.exchange = exchange;
                      if (takes_output(layout)) layout.output = output_in_layers(w, layout);
                      const std::vector<int> groups = groups_to_try(schedule, pipeline_shape(w, layout));
                      layout.group = groups[groups.size() > 1 ? 1 : 0];
                      visit(layout);
                    }
      }
}

TEST(Search, FindsWhatAPlainWalkThroughAllCandidatesFindsAndCountsTheSame) {
  const Workload w = workload("llama-70b-gqa", 40960, 64);
  const Cluster on = cluster(40);
  const SearchSpace space = small_space();
  std::int64_t candidates = 0;
  std::array<std::int64_t, kRejections> rejected{};
  double quickest = INFINITY;
  for_each_layout(w, on, space, [&](Layout layout) {
    ++candidates;
    auto why = reject(w, layout, on.hardware.node.gpus);
    const bool reached = !reject_mesh(w, layout.mesh, on.hardware.node.gpus) &&
                         !reject_batch(w, layout.mesh, layout.micro_batch);
    if (reached && repeats_another(layout)) why = Rejection::Duplicate;
    const FittedMemory memory = why ? FittedMemory{} : fit_with_least_offload(w, layout, on.limit);
    if (!why && !memory.fits) why = Rejection::DeviceMemory;
    layout.offload = memory.offload;
    if (!why && !host_holds(w, on, {.layout = layout, .memory = memory})) why = Rejection::HostMemory;
    if (why) {
      ++rejected[static_cast<std::size_t>(*why)];
      return;
    }
    quickest = std::min(quickest, step_cost(w, layout, on.hardware, on.engine).total());
  });
  const SearchResult found = search(w, on, space);
  EXPECT_EQ(found.candidates, candidates);
  EXPECT_EQ(found.rejected, rejected);
  ASSERT_FALSE(found.best.empty());
  EXPECT_DOUBLE_EQ(found.best[0].cost.total(), quickest);
}

TEST(Search, TheBestAreLegalFitAndAscendInTime) {
  const Workload w = workload("mixtral-8x7b", 65536, 64);
  const Cluster on = cluster(64);
  const SearchResult found = search(w, on, {}, 20);
  ASSERT_EQ(found.best.size(), 20u);
  for (std::size_t i = 0; i < found.best.size(); ++i) {
    const Candidate& candidate = found.best[i];
    EXPECT_FALSE(reject(w, candidate.layout, 8)) << print_layout(candidate.layout);
    for (const auto& memory : layout_memory(w, candidate.layout)) EXPECT_LE(memory.total(), on.limit);
    if (i > 0) {
      EXPECT_FALSE(is_faster(candidate, found.best[i - 1]));
    }
  }
}

TEST(Search, OfSchedulesThatDifferInNothingWithoutAPipelineOneIsListed) {
  SearchSpace space = small_space();
  space.pipeline = {1};
  std::vector<Layout> seen;
  for (const Candidate& candidate : search(workload("llama-7b", 65536, 64), cluster(64), space, 100).best) {
    Layout layout = candidate.layout;
    layout.schedule = ScheduleKind::SlimPipe;
    layout.group = 0;
    layout.offload = 0;
    EXPECT_EQ(std::ranges::count(seen, layout), 0) << print_layout(candidate.layout);
    seen.push_back(layout);
  }
  EXPECT_GT(seen.size(), 4);
}

TEST(Search, TheFrontAscendsInMemoryAndFallsInTimeAndEndsWithTheBestWithoutExchange) {
  const SearchResult found = search(workload("llama-70b-gqa", 131072, 32), cluster(128), {});
  ASSERT_GT(found.pareto.size(), 3u);
  for (std::size_t i = 1; i < found.pareto.size(); ++i) {
    EXPECT_LT(found.pareto[i].step(), found.pareto[i - 1].step());
    EXPECT_GE(found.pareto[i].memory.fullest.total(), found.pareto[i - 1].memory.fullest.total());
  }
  EXPECT_DOUBLE_EQ(found.pareto.back().step(), found.without_exchange[0].step());
}

TEST(Search, TheLeastShareThatFitsIsOffloaded) {
  const Workload w = workload("llama-70b-gqa", 131072, 32);
  Layout layout;
  layout.mesh = {1, 1, 1, 8, 16};
  layout.slices = 64;
  layout.chunks = 5;
  layout.keep = model::keep_of(model::Policy::Balanced);
  const FittedMemory fitted = fit_with_least_offload(w, layout, 75e9);
  ASSERT_TRUE(fitted.fits);
  ASSERT_GT(fitted.offload, 0.01);
  layout.offload = fitted.offload - 0.01;
  EXPECT_FALSE(fit_memory(w, layout, 75e9).fits);
}

TEST(Search, ASequenceHasTwoPiecesForEachContextRankAsItsRunHas) {
  const Layout layout{.mesh = {.context = 8}};
  const Workload odd = workload("llama-7b", 8200, 8), even = workload("llama-7b", 8208, 8);
  EXPECT_EQ(reject(odd, layout, 8), Rejection::Tokens);
  EXPECT_NE(why_no_run(odd, layout), "");
  EXPECT_EQ(reject(even, layout, 8), std::nullopt);
  EXPECT_EQ(why_no_run(even, layout), "");
}

TEST(Search, SizesThatDoNotDivideHaveTheNearestThatDoBesideThem) {
  const auto has = [](const std::vector<int>& sizes, const std::vector<int>& wanted) {
    return std::ranges::includes(sizes, wanted);
  };
  Workload w = workload("llama3-8b", 98415, 9);  // 3^9 · 5 tokens
  EXPECT_TRUE(has(slices_to_try(w, {.pipeline = 8}, {}), {1, 3, 5, 9, 15, 27, 81, 135, 243}));
  EXPECT_TRUE(has(micro_batches_to_try(w, {}, {}), {1, 3, 9}));
  w = workload("llama3-8b", 49152, 9);  // 2^14 · 3
  EXPECT_TRUE(has(slices_to_try(w, {.context = 3}, {}), {1, 2, 4, 8})) << "of 8192 tokens, as before";
  EXPECT_TRUE(has(micro_batches_to_try(w, {.context = 3}, {}), {1, 3, 9})) << "context ranks share a batch";
  w = workload("llama3-8b", 100000, 8);  // 2^5 · 5^5
  EXPECT_TRUE(has(slices_to_try(w, {.tensor = 8}, {}), {1, 2, 4, 10, 20, 25, 50, 125, 250}))
      << "of 12,500 tokens";
  SearchSpace space;
  space.slices = {7};
  space.micro_batch = {5};
  EXPECT_EQ(slices_to_try(w, {}, space), space.slices) << "as asked";
  EXPECT_EQ(micro_batches_to_try(w, {}, space), space.micro_batch);
}

TEST(Search, ShortSequencesHaveLargerMicroBatches) {
  const auto largest = [](std::int64_t seq_len) {
    return micro_batches_to_try(workload("llama2-7b", seq_len, 1024), {}, {}).back();
  };
  EXPECT_EQ(largest(256), 64);
  EXPECT_EQ(largest(1024), 16);
  EXPECT_EQ(largest(131072), 8);
}

TEST(Search, ANearestMissNamesItsLargestCategoryAndWhatWouldMakeItFit) {
  Plan plan{workload("llama-175b", 131072, 8), cluster(8), {}};
  plan.result = search(plan.workload, plan.cluster, {});
  EXPECT_TRUE(plan.result.best.empty());
  const std::string text = print_nearest_miss(plan);
  EXPECT_NE(text.find("optimizer"), std::string::npos) << text;
  EXPECT_NE(text.find("devices of"), std::string::npos) << text;
  EXPECT_EQ(text.find("memory.limit"), std::string::npos) << text;
}

// A limit that was asked for holds on larger devices, too.
TEST(Search, AMissByALimitNamesTheLimitAndWhereItMustTheDevices) {
  const auto told = [](const char* model, double gigabytes) {
    Plan plan{workload(model, 4096, 8), cluster(8), {}};
    plan.cluster.limit = gigabytes * 1e9;
    SearchSpace space;
    space.schedules = {ScheduleKind::OneFOneB};
    plan.result = search(plan.workload, plan.cluster, space);
    return print_nearest_miss(plan);
  };
  const std::string fits_the_devices = told("llama-7b", 2), larger = told("llama-175b", 60);
  EXPECT_NE(fits_the_devices.find("memory.limit = \""), std::string::npos) << fits_the_devices;
  EXPECT_EQ(fits_the_devices.find("devices of"), std::string::npos) << fits_the_devices;
  EXPECT_NE(larger.find("devices of"), std::string::npos) << larger;
  EXPECT_NE(larger.find(" GB and memory.limit = \""), std::string::npos) << larger;
}

TEST(Search, WhereNothingCanBeRunTheMainConstraintIsNamedWithItsLegalValues) {
  Plan plan{workload("llama-7b", 4096, 8), cluster(8), {}};
  SearchSpace space;
  space.pipeline = {8};
  space.chunks = {5};
  plan.result = search(plan.workload, plan.cluster, space);
  const std::string text = print_nearest_miss(plan);
  EXPECT_TRUE(text.starts_with("nothing can be run: of ")) << text;
  EXPECT_NE(text.find("every one of pp·chunks stages needs a layer; layers = 32"), std::string::npos) << text;
}

TEST(Search, AConstraintOfTheMeshAloneIsNotNamedIfOtherMeshesGotFurther) {
  Plan plan{workload("llama-7b", 4096, 4), cluster(1000), {}};
  plan.result = search(plan.workload, plan.cluster, {});
  const std::string text = print_nearest_miss(plan);
  EXPECT_EQ(text.find("tp must divide the heads"), std::string::npos) << text;
  EXPECT_NE(text.find("dp·micro_batch must divide the global batch; workload.global_batch = 4"),
            std::string::npos)
      << text;
  SearchSpace space;
  space.tensor = {5};
  plan.result = search(plan.workload, plan.cluster, space);
  EXPECT_NE(print_nearest_miss(plan).find("tp must divide the heads"), std::string::npos);
}

TEST(Search, ChoicesThatContradictEachOtherAreNamedAndNotTheSizesOfOtherCandidates) {
  Plan plan{workload("llama-7b", 8192, 32), cluster(8), {}};
  const auto said = [&](const SearchSpace& space) {
    plan.result = search(plan.workload, plan.cluster, space);
    return print_nearest_miss(plan);
  };
  SearchSpace space;
  space.schedules = {ScheduleKind::OneFOneB};
  space.exchanges = {ExchangeMode::Paired};
  EXPECT_NE(said(space).find(sentence_of(Rejection::Exchange)), std::string::npos) << said(space);
  space.exchanges = {ExchangeMode::Off};
  space.vocabulary_parallel = {true};
  EXPECT_NE(said(space).find(sentence_of(Rejection::Vocabulary)), std::string::npos) << said(space);
  space.vocabulary_parallel = {false};
  space.slices = {4};
  EXPECT_NE(said(space).find(sentence_of(Rejection::Schedule)), std::string::npos) << said(space);
}

TEST(Search, WhereSizesMakeUpNoMeshTheyAreNamed) {
  Plan plan{workload("llama-7b", 4096, 8), cluster(8), {}};
  SearchSpace space;
  space.pipeline = {3};
  plan.result = search(plan.workload, plan.cluster, space);
  EXPECT_EQ(print_nearest_miss(plan),
            "nothing can be run: no mesh of the sizes that [search] allows (tp, cp, ep, pp) has "
            "cluster.gpus = 8 devices");
}

TEST(Search, ImpossibleClustersAreRefusedByName) {
  const Workload w = workload("llama-7b", 4096, 8);
  EXPECT_THROW(search(w, cluster(0), {}), InputError);
  EXPECT_THROW(search(w, cluster(12), {}), InputError) << "12 devices do not fill nodes of 8";
  EXPECT_NO_THROW(search(w, cluster(4), {})) << "a part of one node";
}

TEST(Search, NoAxisIsLongerThanInARunFile) {
  const Workload w = workload("llama-7b", 4096, 1 << 17);
  Cluster on = cluster(1 << 17);
  const auto longest = [&] {
    int most = 0;
    for (const mesh::Mesh& mesh : all_meshes(w, on, {}))
      most = std::max({most, mesh.tensor, mesh.context, mesh.data, mesh.pipeline});
    return most;
  };
  EXPECT_EQ(longest(), 1 << 16);
  on.engine = {};
  EXPECT_EQ(longest(), 1 << 17) << "of another program";
  const std::string why = why_no_run(w, {.mesh = {.data = 1 << 17}});
  EXPECT_NE(why.find("parallel.dp = 131072 must be from 1 to 65536"), std::string::npos) << why;
}

TEST(Search, WhatWouldFitIsNoMeshThatIsRefused) {
  const auto ways = [](Tokens seq_len) {
    const Workload w = workload("llama-7b", seq_len, 1);
    Layout layout{.mesh = {.context = 16}, .schedule = ScheduleKind::OneFOneB};
    layout.keep = model::keep_of(model::Policy::None);
    Layout wider = layout;
    wider.mesh.context = 32;
    Cluster on = cluster(16);
    on.limit = as_double(fit_memory(w, wider, 1e30).fullest.total());
    return what_would_fit(w, on, {.layout = layout, .memory = fit_memory(w, layout, on.limit)});
  };
  EXPECT_NE(ways(102400).find("cp 32 on 2 times the devices"), std::string::npos) << ways(102400);
  EXPECT_EQ(ways(100000).find("cp 32"), std::string::npos) << "64 pieces do not divide it";
}

}  // namespace
}  // namespace penstock::plan
