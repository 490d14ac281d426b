// SPDX-License-Identifier: Apache-2.0
#include "plan/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "plan/enumerate.h"
#include "plan/host_memory.h"
#include "plan/plan_print.h"
#include "plan/run_file.h"
#include "plan/simulated_step.h"
#include "reference.h"

namespace penstock::plan {
namespace {

Workload workload(const char* model, Tokens seq_len, std::int64_t batch) {
  return {find_model(model), seq_len, batch};
}

Cluster cluster(std::int64_t gpus, const char* hardware = "h800") {
  Cluster cluster{read_hardware(hardware), gpus, 0, sim::kPenstock};
  cluster.limit = cluster.hardware.usable_bytes();
  return cluster;
}

// A small space, for comparing with a plain walk through all of it.
SearchSpace small_space() {
  SearchSpace space;
  space.tensor = {1, 2, 4, 8, 16};
  space.context = {1, 2};
  space.expert = {1};
  space.pipeline = {1, 2, 4, 5};
  space.chunks = {1, 2, 5};
  space.slices = {1, 4, 8};
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
  const Workload w = workload("llama-70b-gqa", 32768, 64);
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
    if (reached && repeats_another(layout)) why = Rejection::Schedule;
    const FittedMemory memory = why ? FittedMemory{} : fit_memory(w, layout, on.limit, false);
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
      EXPECT_GE(candidate.step(), found.best[i - 1].step());
    }
  }
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
  const FittedMemory fitted = fit_memory(w, layout, 75e9, false);
  ASSERT_TRUE(fitted.fits);
  ASSERT_GT(fitted.offload, 0.01);
  layout.offload = fitted.offload - 0.01;
  EXPECT_FALSE(fit_memory(w, layout, 75e9, true).fits);
}

TEST(Search, ASequenceHasTwoPiecesForEachContextRankAsItsRunHas) {
  const Layout layout{.mesh = {.context = 8}};
  const Workload odd = workload("llama-7b", 8200, 8), even = workload("llama-7b", 8208, 8);
  EXPECT_EQ(reject(odd, layout, 8), Rejection::Tokens);
  EXPECT_NE(why_no_run(odd, layout), "");
  EXPECT_EQ(reject(even, layout, 8), std::nullopt);
  EXPECT_EQ(why_no_run(even, layout), "");
}

TEST(Search, ANearestMissNamesItsLargestCategoryAndWhatWouldMakeItFit) {
  Plan plan{workload("llama-175b", 131072, 8), cluster(8), {}};
  plan.result = search(plan.workload, plan.cluster, {});
  EXPECT_TRUE(plan.result.best.empty());
  const std::string text = print_nearest_miss(plan);
  EXPECT_NE(text.find("optimizer"), std::string::npos) << text;
  EXPECT_NE(text.find("devices of"), std::string::npos) << text;
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
    on.limit = as_double(fit_memory(w, wider, 1e30, /*fixed=*/true).fullest.total());
    return what_would_fit(w, on, {.layout = layout, .memory = fit_memory(w, layout, on.limit, true)});
  };
  EXPECT_NE(ways(102400).find("cp 32 on 2 times the devices"), std::string::npos) << ways(102400);
  EXPECT_EQ(ways(100000).find("cp 32"), std::string::npos) << "64 pieces do not divide it";
}

// One figure and one verdict: the closed form of these has 6 GB more.
TEST(SimulatedStep, AnExplanationHasTheMemoryOfTheRun) {
  const Workload w = workload("llama-7b", 8192, 32);
  const Cluster on = cluster(8);
  SearchSpace space;
  space.pipeline = {4};
  space.chunks = {3};
  SearchResult found = search(w, on, space, 10);
  simulate_best(w, on, found, 4, /*any_offload=*/true);
  ASSERT_FALSE(found.best.empty());
  const Candidate& winner = found.best[0];
  const std::string fullest = number(static_cast<double>(winner.memory.fullest.total()) / 1e9, 2);
  EXPECT_NE(explain(w, on, winner).find(": " + fullest + " of "), std::string::npos)
      << fullest << "\n"
      << explain(w, on, winner);
}

// Of runs that miss the limit which the closed form keeps, the nearest is told as it was predicted.
TEST(SimulatedStep, ANearestMissHasTheMemoryOfItsRun) {
  const Workload w = workload("llama-70b-gqa", 65536, 16);
  Plan plan{w, cluster(64), {}};
  plan.cluster.limit = 69e9;
  SearchSpace space;
  space.schedules = {ScheduleKind::Greedy};
  plan.result = search(w, plan.cluster, space, 48);
  ASSERT_FALSE(plan.result.best.empty()) << "the closed form has some that fit";
  simulate_best(w, plan.cluster, plan.result, 24, /*any_offload=*/true);
  ASSERT_TRUE(plan.result.best.empty());
  ASSERT_TRUE(plan.result.nearest_miss);
  EXPECT_GT(static_cast<double>(plan.result.nearest_miss->memory.fullest.total()), plan.cluster.limit);
  EXPECT_EQ(print_nearest_miss(plan).find("offload 100 % of the records"), std::string::npos)
      << print_nearest_miss(plan);
}

TEST(SimulatedStep, WhereTheFastestMissSlowerOnesAreTried) {
  const Workload w = workload("llama-7b", 8192, 8);
  Cluster on = cluster(8);
  Layout layout{.mesh = {.pipeline = 8}, .schedule = ScheduleKind::OneFOneB};
  layout.keep = model::keep_of(model::Policy::None);
  const Candidate fast{.layout = layout};
  layout.keep = model::keep_of(model::Policy::Full);
  const Candidate small{.layout = layout};
  on.limit = as_double(as_its_run(w, on, small, /*any_offload=*/false)->memory.fullest.total());
  SearchResult found;
  found.best = found.without_exchange = {fast, small};
  simulate_best(w, on, found, 1, /*any_offload=*/false);
  ASSERT_EQ(found.best.size(), 1u);
  EXPECT_EQ(found.best[0].layout, small.layout);
  EXPECT_TRUE(found.best[0].simulated) << "not the closed form's";
}

// Eight records, of which four leave: what is on the host is no measure of what that saves.
TEST(SimulatedStep, ARunGetsTheLeastShareThatFitsFromAnyFirstOne) {
  const Workload w = workload("llama-7b", 8192, 8);
  Cluster on = cluster(8);
  const auto with = [&](double share, bool any_offload) {
    Layout layout{.mesh = {.pipeline = 8}, .schedule = ScheduleKind::OneFOneB};
    layout.keep = model::keep_of(model::Policy::None);
    layout.offload = share;
    return *as_its_run(w, on, {.layout = layout}, any_offload);
  };
  for (const double enough : {0.0, 0.6, 1.0}) {
    on.limit = as_double(with(enough, false).memory.fullest.total());
    for (const double first : {0.0, 0.5, 1.0}) {
      const Candidate found = with(first, true);
      EXPECT_TRUE(found.memory.fits) << enough << " from " << first;
      EXPECT_LE(found.layout.offload, enough) << "from " << first;
      if (found.layout.offload > 0) {
        EXPECT_FALSE(with(found.layout.offload - 0.01, false).memory.fits) << enough << " from " << first;
      }
    }
  }
}

TEST(SimulatedStep, WhatTheTrainerRefusesDoesNotComeBackInClosedForm) {
  Plan plan{workload("llama-7b", 4096, 8), cluster(8), {}};
  plan.workload.model.shape.vocab = 100;
  SearchSpace space;
  space.tensor = {1, 2};
  space.pipeline = {2, 4};
  space.chunks = {1};
  plan.result = search(plan.workload, plan.cluster, space);
  ASSERT_FALSE(plan.result.best.empty());
  simulate_best(plan.workload, plan.cluster, plan.result, 2, /*any_offload=*/true);
  EXPECT_TRUE(plan.result.best.empty());
  EXPECT_TRUE(plan.result.pareto.empty());
  const std::string text = print_nearest_miss(plan);
  EXPECT_TRUE(text.starts_with("nothing can be run: model.vocab = 100 is less than the 259 tokens")) << text;
}

// The closed form of exchange is rough. Simulated, it has to pay.
TEST(SimulatedStep, DecidesWhetherExchangePays) {
  const Workload w = workload("llama-70b-gqa", 131072, 32);
  const Cluster on = cluster(64);
  SearchResult found = search(w, on, {}, 10);
  ASSERT_FALSE(found.without_exchange.empty());
  simulate_best(w, on, found, 4, /*any_offload=*/true);
  const Candidate& winner = found.best[0];
  ASSERT_TRUE(winner.simulated);
  for (const Candidate& other : found.best) {
    if (other.simulated) {
      EXPECT_GE(*other.simulated, *winner.simulated);
    } else {
      EXPECT_EQ(other.layout.exchange, ExchangeMode::Off) << "exchange is not judged by its closed form";
    }
  }
  if (winner.layout.exchange == ExchangeMode::Off) return;
  Layout without = winner.layout;
  without.exchange = ExchangeMode::Off;
  EXPECT_LT(*winner.simulated, simulate_step(w, on, without)->result.makespan);
}

TEST(SimulatedStep, GivesEachCandidateTheFastestGroupOfSlices) {
  const Workload w = workload("llama-70b-gqa", 131072, 1);
  const Cluster on = cluster(64);
  SearchSpace space;
  space.tensor = space.pipeline = {8};
  space.slices = {64};
  space.chunks = {5, 10};
  space.schedules = {ScheduleKind::SlimPipe};
  space.vocabulary_parallel = {false};
  SearchResult found = search(w, on, space, 10);
  simulate_best(w, on, found, 3, /*any_offload=*/true);
  const Candidate& winner = found.best[0];
  Layout other = winner.layout;
  for (const int group : groups_to_try(other.schedule, pipeline_shape(w, other))) {
    other.group = group;
    EXPECT_LE(*winner.simulated, simulate_step(w, on, other)->result.makespan) << group;
  }
  other.group = 0;
  EXPECT_LT(*winner.simulated, 0.97 * simulate_step(w, on, other)->result.makespan) << "between nodes";
  EXPECT_NE(run_file(w, on, winner, "", "out").find("group = 16"), std::string::npos);
  for (std::size_t i = 1; i < found.best.size(); ++i) {
    other = found.best[i].layout;
    other.group = winner.layout.group;
    EXPECT_NE(other, winner.layout) << "one group of each layout";
  }
}

// With context exchange groups differ in what they hold.
TEST(SimulatedStep, TakesASmallerGroupOfSlicesWhereALargerOneDoesNotFit) {
  const Workload w = workload("llama-70b-gqa", 131072, 1);
  SearchSpace space;
  space.tensor = space.pipeline = {8};
  space.slices = {16};
  space.chunks = {5};
  space.schedules = {ScheduleKind::SlimPipe};
  space.vocabulary_parallel = {false};
  space.exchanges = {ExchangeMode::Paired};
  space.policies = {model::Policy::None};
  space.offload = 0.0;
  const auto best = [&](double limit) {
    Cluster on = cluster(64);
    on.limit = limit;
    SearchResult found = search(w, on, space, 10);
    simulate_best(w, on, found, 3, /*any_offload=*/false);
    return found.best.at(0);
  };
  const auto bytes = [](const Candidate& candidate) {
    return static_cast<double>(candidate.memory.fullest.total());
  };
  const Candidate roomy = best(1e15), tight = best(bytes(roomy) - 1);
  EXPECT_EQ(roomy.layout.group, 16);
  EXPECT_EQ(tight.layout.group, 0);
  EXPECT_LT(bytes(tight), bytes(roomy));
  EXPECT_GT(*tight.simulated, *roomy.simulated);
}

// Neither are those that nobody simulated when there is nothing else.
TEST(SimulatedStep, ExchangeAloneIsNotJudgedByItsClosedForm) {
  const Workload w = workload("llama-7b", 8192, 8);
  const Cluster on = cluster(8);
  SearchSpace space;
  space.exchanges = {ExchangeMode::Levelled};
  space.pipeline = {4};
  space.slices = {4};
  space.chunks = {1};
  SearchResult found = search(w, on, space, 10);
  ASSERT_GT(found.best.size(), 2u);
  simulate_best(w, on, found, 2, /*any_offload=*/true);
  ASSERT_FALSE(found.best.empty());
  for (const Candidate& candidate : found.best)
    EXPECT_TRUE(candidate.simulated) << print_layout(candidate.layout);
}

TEST(SimulatedStep, AgreesWithTheClosedFormWithinFourPercent) {
  const Workload w = workload("llama-70b-gqa", 32768, 256);
  const Cluster on = cluster(128);
  for (const auto kind :
       {ScheduleKind::OneFOneB, ScheduleKind::Interleaved, ScheduleKind::SlimPipe, ScheduleKind::ZbH1}) {
    SearchSpace space;
    space.schedules = {kind};
    space.pipeline = {4};
    const SearchResult found = search(w, on, space, 1);
    ASSERT_FALSE(found.best.empty()) << name_of(kind);
    const Candidate& best = found.best[0];
    const auto step = simulate_step(w, on, best.layout);
    ASSERT_TRUE(step);
    EXPECT_NEAR(step->result.makespan / best.cost.total(), 1.0, 0.04) << print_layout(best.layout);
  }
}

TEST(StepCost, TermsAddUpToTheStepAndNoneIsNegative) {
  const Workload w = workload("mixtral-8x22b", 65536, 64);
  const SearchResult found = search(w, cluster(128), {}, 50);
  for (const Candidate& candidate : found.best) {
    double sum = 0;
    for (const auto& [name, seconds] : terms_of(candidate.cost)) {
      EXPECT_GE(seconds, 0) << name;
      sum += seconds;
    }
    EXPECT_NEAR(sum, candidate.cost.total(), 1e-9 * sum);
  }
}

TEST(StepCost, FullRecomputationOfOurOwnFormsWhatIsMissingAloneAndThatOfOthersAllAgain) {
  const Workload w = workload("llama-7b", 8192, 8);
  const Layout layout{.keep = model::keep_of(model::Policy::Full)};
  const sim::Hardware hardware = read_hardware("h800");
  const SliceCost own = slice_cost(w, layout, hardware, sim::kPenstock),
                  others = slice_cost(w, layout, hardware, {});
  EXPECT_LT(own.again.matrix, 0.9 * own.layer.forward.matrix) << "without the last product";
  EXPECT_GT(own.again.matrix, 0.5 * own.layer.forward.matrix);
  EXPECT_DOUBLE_EQ(others.again.matrix, others.layer.forward.matrix);
}

TEST(StepCost, TheVocabularyIsPaddedWhereTheEngineDoes) {
  Workload w = workload("llama-7b", 8192, 8);
  const sim::Hardware hardware = read_hardware("h800");
  const auto seconds = [&](const sim::Engine& engine, std::int64_t vocab) {
    w.model.shape.vocab = vocab;
    return slice_cost(w, {}, hardware, engine).output;
  };
  sim::Engine padding = sim::kPenstock;
  padding.padded_vocabulary = true;
  EXPECT_DOUBLE_EQ(seconds(padding, 259), seconds(sim::kPenstock, 384));
  EXPECT_LT(seconds(sim::kPenstock, 259), seconds(sim::kPenstock, 384));
}

TEST(StepCost, GatheredWeightsAreAsWideAsThePrecisionHasThem) {
  Workload w = workload("llama-7b", 8192, 8);
  const Layout layout{.mesh = {.data = 8}, .schedule = ScheduleKind::OneFOneB};
  const auto gradients = [&] { return step_cost(w, layout, read_hardware("h800"), {}).gradients; };
  const Seconds narrow = gradients();
  w.precision = model::Precision::F32;
  EXPECT_NEAR(gradients() / narrow, 8.0 / 6, 0.02) << "sums of four bytes, and weights of two or four";
}

// However experts are spread, a device steps as many of their states.
TEST(StepCost, ExpertsAreSharedOutOverTheRanksThatHaveTheSame) {
  const sim::Hardware hardware = read_hardware("h800");
  const sim::Engine engine{.folded_experts = true};
  const auto cost = [&](const mesh::Mesh& mesh, const SharedWeights& shared, std::int64_t ffn = 14336) {
    Workload w = workload("mixtral-8x7b", 8192, 64);
    w.model.shape.ffn = ffn;
    return step_cost(w, {.mesh = mesh, .schedule = ScheduleKind::OneFOneB, .shared = shared}, hardware,
                     engine);
  };
  const SharedWeights all{.on = true}, copies{.on = true, .group = 4}, whole{.group = 1};
  const mesh::Mesh together{.data = 8}, apart{.expert = 8, .data = 8}, pairs{.expert = 2, .data = 8};
  for (const mesh::Mesh& mesh : {apart, pairs})
    EXPECT_NEAR(cost(mesh, all).optimizer / cost(together, all).optimizer, 1, 1e-9);
  EXPECT_NEAR(cost(pairs, copies).optimizer / cost(together, copies).optimizer, 1, 1e-9);
  EXPECT_DOUBLE_EQ(cost(apart, all).gradients, cost(apart, all, 28672).gradients) << "nobody has the same";
  EXPECT_LT(cost(pairs, all).gradients, cost(pairs, all, 28672).gradients);
  EXPECT_NEAR(cost(pairs, whole).optimizer, cost({.expert = 2, .data = 2}, whole).optimizer, 1e-12);
}

TEST(PlanJson, HasTheKeysThatScriptsRelyOn) {
  Plan plan{workload("llama-70b-gqa", 131072, 32), cluster(128), {}};
  plan.result = search(plan.workload, plan.cluster, {}, 2);
  const std::string json = print_plan_json(plan);
  for (const char* key : {"candidates", "rejected", "best", "search_s", "tp", "cp", "ep", "pp", "dp",
                          "chunks", "slices", "schedule", "policy", "offload_ratio", "step_s",
                          "tokens_per_s_per_gpu", "mfu", "peak_bytes", "host_bytes"}) {
    EXPECT_NE(json.find("\"" + std::string(key) + "\":"), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace penstock::plan
