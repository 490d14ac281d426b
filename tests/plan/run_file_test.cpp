// SPDX-License-Identifier: Apache-2.0
#include "plan/run_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "failure.h"
#include "files/option_file.h"
#include "plan/simulated_step.h"
#include "reference.h"
#include "run/costs.h"
#include "run/memory.h"
#include "run/resolve/resolve.h"

namespace penstock::plan {
namespace {

Cluster cluster_of(std::int64_t gpus) {
  Cluster cluster{read_hardware("h800"), gpus, 0, sim::kPenstock};
  cluster.limit = cluster.hardware.usable_bytes();
  return cluster;
}

Candidate candidate_of(const Workload& workload, const Cluster& on, const Layout& layout) {
  Candidate candidate{.layout = layout};
  candidate.cost = step_cost(workload, layout, on.hardware, on.engine);
  return candidate;
}

run::Run resolved(const std::string& text) {
  run::Options options;
  files::read_toml(text, "run.toml", run::describe(options));
  return run::resolve(options);
}

Layout hybrid() {
  Layout layout;
  layout.mesh = {.tensor = 8, .context = 2, .expert = 2, .data = 2, .pipeline = 4};
  layout.slices = 8;
  layout.chunks = 2;
  layout.keep = model::keep_of(model::Policy::Balanced);
  return layout;
}

TEST(RunFile, OpensWithTheLayout) {
  const Workload w{find_model("llama-7b"), 4096, 8};
  const Cluster on = cluster_of(8);
  Layout layout;
  layout.mesh = {.pipeline = 8};
  layout.keep = model::keep_of(model::Policy::None);
  EXPECT_TRUE(run_file(w, on, candidate_of(w, on, layout), "text.txt", "runs/x").starts_with("# t1 p8"));
}

TEST(RunFile, SaysHowContextRanksAttendInTheClosedForm) {
  const Workload w{find_model("llama-7b"), 49152, 8};
  const Cluster on = cluster_of(64);
  const auto mode_of = [&](int tensor, int context) {
    Layout layout = hybrid();
    layout.mesh = {.tensor = tensor, .context = context, .pipeline = 2};
    return resolved(run_file(w, on, candidate_of(w, on, layout), "", "runs/x")).options.parallel.cp_mode;
  };
  EXPECT_EQ(mode_of(8, 4), "heads");  // four heads on each tensor rank
  EXPECT_EQ(mode_of(8, 8), "mixed");
  EXPECT_EQ(mode_of(1, 3), "query");
}

TEST(RunFile, OfAHybridMeshWithExpertsResolvesToTheLayout) {
  const Workload w{find_model("mixtral-8x22b"), 65536, 8};
  const Cluster on = cluster_of(128);
  Layout layout = hybrid();
  layout.chunks = 7;
  layout.offload = 0.5;
  layout.exchange = ExchangeMode::Levelled;
  layout.vocabulary_parallel = true;
  const run::Run run = resolved(run_file(w, on, candidate_of(w, on, layout), "", "runs/x"));
  EXPECT_EQ(run.mesh, layout.mesh);
  EXPECT_EQ(run.shape().experts, 8);
  EXPECT_EQ(run.shape().experts_per_token, 2);
  EXPECT_EQ(run.stages(), 28);
  EXPECT_EQ(run.schedule.slices, std::vector<int>(4, 8));
  EXPECT_EQ(run.offload, 0.5);
  EXPECT_EQ(run.exchange, ExchangeMode::Levelled);
  EXPECT_TRUE(run.sharded_vocabulary());
  EXPECT_TRUE(run.shape().tied_embeddings);
  EXPECT_EQ(run.keep.front(), layout.keep);
  EXPECT_EQ(run.predicted.size(), 4u);
}

TEST(RunFile, SaysOnlyWhatDiffersFromTheDefaults) {
  const Workload w{find_model("llama-7b"), 4096, 8};
  const Cluster on = cluster_of(8);
  Layout layout;
  layout.mesh = {.pipeline = 8};
  layout.keep = model::keep_of(model::Policy::None);
  const std::string text = run_file(w, on, candidate_of(w, on, layout), "", "runs/x");
  EXPECT_NE(text.find("\n[parallel]\npp = 8\nlayers = \"even\"\n\n[schedule]"), std::string::npos) << text;
  EXPECT_EQ(text.find("rope_theta"), std::string::npos) << text;
  EXPECT_EQ(text.find("exchange"), std::string::npos) << text;
}

TEST(RunFile, TheNameOfAMachineEndsNoComment) {
  const Workload w{find_model("llama-7b"), 4096, 8};
  Cluster on = cluster_of(8);
  on.hardware.device.name = "h800\npp = 2";
  Layout layout;
  layout.mesh = {.pipeline = 8};
  layout.keep = model::keep_of(model::Policy::None);
  const std::string text = run_file(w, on, candidate_of(w, on, layout), "", "runs/x");
  EXPECT_EQ(text.find("\npp = 2"), std::string::npos) << text;
  EXPECT_EQ(print_question({w, on, {}}).find('\n'), std::string::npos);
}

TEST(RunFile, SaysWithWhichLoadOfExpertsItWasPlanned) {
  Workload w{find_model("mixtral-8x22b"), 65536, 8};
  const Cluster on = cluster_of(128);
  const auto text = [&](int expert_ranks) {
    Layout layout = hybrid();
    layout.mesh.expert = expert_ranks;
    layout.chunks = 7;
    return run_file(w, on, candidate_of(w, on, layout), "", "runs/x");
  };
  EXPECT_EQ(text(2).find("--expert-load"), std::string::npos);
  w.expert_load = 1.3;
  EXPECT_NE(text(2).find("penstock simulate FILE --expert-load 1.3\n"), std::string::npos) << text(2);
  EXPECT_EQ(text(1).find("--expert-load"), std::string::npos) << "there is one rank alone";
}

TEST(RunFile, IsOfPenstocksOwnEngine) {
  const Workload w{find_model("llama-7b"), 4096, 8};
  Cluster on = cluster_of(8);
  on.engine = {.name = "nemo"};
  Layout layout;
  layout.mesh = {.pipeline = 8};
  layout.keep = model::keep_of(model::Policy::None);
  const std::string said =
      failure<InputError>([&] { run_file(w, on, candidate_of(w, on, layout), "", "runs/x"); });
  EXPECT_EQ(
      said,
      "a run file works only with Penstock's own trainer, but the plan is for the engine \"nemo\"; expected "
      "cluster.engine = \"penstock\"");
}

// What is planned fits by the trainer's own prediction, action by action.
TEST(RunFile, OfABestHasTheMemoryThatThePlanShows) {
  const Workload w{find_model("llama3-70b"), 65536, 8};
  const Cluster on = cluster_of(64);
  SearchResult found = search(w, on, {}, 6);
  simulate_best(w, on, found, 3, /*any_offload=*/true);
  int seen = 0;
  for (const Candidate& candidate : found.best) {
    if (!candidate.simulated) continue;
    ++seen;
    const run::Run run = resolved(run_file(w, on, candidate, "", "runs/x"));
    const auto fullest = run::fullest_device(run.predicted);
    EXPECT_EQ(run.predicted[fullest], candidate.memory.fullest) << print_layout(candidate.layout);
    EXPECT_EQ(static_cast<int>(fullest), candidate.memory.rank);
    EXPECT_LE(candidate.memory.fullest.total(), on.limit);
  }
  EXPECT_GE(seen, 3);
}

// The planner and `simulate` of its run file give the same step.
TEST(RunFile, SimulatedIsThePlannersSimulation) {
  const Workload w{find_model("llama3-70b"), 65536, 8};
  for (const bool vocabulary : {false, true}) {
    for (const int replicas : {1, 2}) {
      for (const ExchangeMode exchange : {ExchangeMode::Off, ExchangeMode::Levelled}) {
        const Cluster on = cluster_of(32 * replicas);
        Layout layout = hybrid();
        layout.mesh = {.tensor = 8, .context = 1, .data = replicas, .pipeline = 4};
        layout.vocabulary_parallel = vocabulary;
        layout.exchange = exchange;
        layout.offload = 0.5;
        const run::Run run = resolved(run_file(w, on, candidate_of(w, on, layout), "", "runs/x"));
        const sim::AnalyticCosts costs = run::costs_of(run, on.hardware);
        const auto planned = simulate_step(w, on, layout);
        ASSERT_TRUE(planned);
        EXPECT_EQ(sim::simulate(run.program, costs).timeline.makespan(), planned->result.makespan)
            << print_layout(layout);
      }
    }
  }
}

// The plan's speeds are not those of the machine that reads the file.
TEST(RunFile, OfAScheduleMadeForSpeedsHasThePlannedOrder) {
  const Workload w{find_model("llama3-70b"), 65536, 8};
  Cluster on = cluster_of(64);
  on.hardware.network.gbps_per_gpu /= 20;
  Layout layout;
  layout.mesh = {.tensor = 8, .data = 2, .pipeline = 4};
  layout.chunks = 2;
  layout.keep = model::keep_of(model::Policy::None);
  layout.schedule = ScheduleKind::Greedy;
  const run::Run run = resolved(run_file(w, on, candidate_of(w, on, layout), "", "runs/x"));
  EXPECT_EQ(run.program, simulate_step(w, on, layout)->program);
  EXPECT_NE(resolved(run_file(w, cluster_of(64), candidate_of(w, on, layout), "", "runs/x")).program,
            run.program);
}

}  // namespace
}  // namespace penstock::plan
