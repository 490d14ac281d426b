// SPDX-License-Identifier: Apache-2.0
// Terms of the closed form next to the simulation of the same layout's run.
#include "plan/step_cost.h"

#include <gtest/gtest.h>

#include <tuple>
#include <utility>

#include "plan/plan_print.h"
#include "plan/run_file.h"
#include "plan/simulated_step.h"
#include "questions.h"
#include "reference.h"
#include "run/resolve/resolve.h"
#include "schedule/passes/lower.h"
#include "sim/costs/collectives.h"
#include "sim/costs/unit.h"
#include "sim/simulate.h"

namespace penstock::plan {
namespace {

using schedule::OpKind;

Workload llama_7b(bool tied) {
  Workload workload{find_model("llama-7b"), 32768, 32};
  workload.model.shape.tied_embeddings = tied;
  return workload;
}

// The terms compared here do not include the wait for the slowest node and the step's fixed time.
Cluster cluster_for(const Layout& layout) {
  Cluster cluster{read_hardware("h800"), layout.mesh.world(), 0, sim::kPenstock};
  cluster.hardware.network.straggle = 0;
  cluster.hardware.kernels.step_ms = 0;
  cluster.limit = 1e15;
  return cluster;
}

StepCost closed_form(const Workload& workload, const Layout& layout, const Cluster& on) {
  return step_cost(workload, layout, on.hardware, on.engine);
}

// The longest op of the kind that `counts` accepts.
template <class Counts>
Seconds longest(const Workload& workload, const Layout& layout, const Cluster& on, Counts&& counts) {
  const SimulatedStep step = simulate_step(workload, on, layout).value();
  Seconds most = 0;
  for (std::size_t device = 0; device < step.program.devices.size(); ++device) {
    const std::vector<schedule::Op>& ops = step.program.devices[device].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const schedule::Event& event = step.result.timeline.devices[device][i];
      if (counts(ops[i])) most = std::max(most, event.end - event.start);
    }
  }
  return most;
}

Layout layout_on(const mesh::Mesh& mesh, ScheduleKind schedule, int chunks = 1) {
  Layout layout;
  layout.mesh = mesh;
  layout.schedule = schedule;
  layout.chunks = chunks;
  layout.keep = model::keep_of(model::Policy::None);
  return layout;
}

TEST(StepCost, SumsTheShareOfATiedGradientWhoseStatesARankHas) {
  Layout layout = layout_on({.tensor = 2, .context = 2, .data = 4, .pipeline = 4}, ScheduleKind::OneFOneB);
  const Cluster on = cluster_for(layout);
  const auto sum = [&] {
    return closed_form(llama_7b(true), layout, on).gradients -
           closed_form(llama_7b(false), layout, on).gradients;
  };
  const auto is_tied_sum = [](const schedule::Op& op) {
    return op.kind == OpKind::ReduceGradients && op.group != mesh::Group::Replica;
  };
  EXPECT_GT(sum(), 0);
  EXPECT_NEAR(sum() / longest(llama_7b(true), layout, on, is_tied_sum), 1, 0.001);
  layout = layout_on(layout.mesh, ScheduleKind::ZbV, 2);
  EXPECT_EQ(sum(), 0) << "device 0 has both ends";
}

TEST(StepCost, StepsBothMatricesOfADeviceThatHasBothEnds) {
  const auto is_step = [](const schedule::Op& op) { return op.kind == OpKind::OptimizerStep; };
  const mesh::Mesh alone{.tensor = 2, .data = 4}, pipeline{.tensor = 2, .data = 4, .pipeline = 4};
  for (const bool tied : {false, true}) {
    const Workload w = llama_7b(tied);
    for (const Layout& layout :
         {layout_on(alone, ScheduleKind::OneFOneB), layout_on(pipeline, ScheduleKind::OneFOneB),
          layout_on(pipeline, ScheduleKind::ZbV, 2)}) {
      const Cluster on = cluster_for(layout);
      EXPECT_NEAR(closed_form(w, layout, on).optimizer / longest(w, layout, on, is_step), 1, 0.01)
          << print_layout(layout) << " tied " << tied;
    }
  }
}

// How many transfers of a unit-time simulation add to the makespan.
double simulated_transfers(const Workload& workload, const Layout& layout) {
  const schedule::Program program =
      schedule::lower(run::lay_out(options_of(workload, layout), {}).schedule, schedule::Lowering{});
  const auto makespan = [&](Seconds transfer) {
    return sim::simulate(program, sim::UnitCosts({.transfer = transfer})).timeline.makespan();
  };
  return (makespan(0.125) - makespan(0)) / 0.125;
}

TEST(StepCost, ExposesAsManyTransfersAsASimulation) {
  Workload w = llama_7b(false);
  w.seq_len = 131072;
  const mesh::Mesh mesh{.pipeline = 4}, longer{.pipeline = 8};
  const auto layout_of = [&](ScheduleKind kind, int slices, int chunks) {
    Layout layout = layout_on(mesh, kind, chunks);
    layout.slices = slices;
    return layout;
  };
  const auto longer_of = [&](ScheduleKind kind, int slices) {
    Layout layout = layout_on(longer, kind);
    layout.slices = slices;
    return layout;
  };
  for (const Layout& layout :
       {layout_of(ScheduleKind::OneFOneB, 1, 1), longer_of(ScheduleKind::OneFOneB, 1),
        layout_of(ScheduleKind::Seq1F1B, 2, 1), longer_of(ScheduleKind::Seq1F1B, 64),
        layout_of(ScheduleKind::GPipe, 1, 1), layout_of(ScheduleKind::Interleaved, 1, 4),
        layout_of(ScheduleKind::SeqInterleaved, 4, 2), layout_of(ScheduleKind::SeqInterleaved, 16, 2),
        layout_of(ScheduleKind::SlimPipe, 16, 1), layout_of(ScheduleKind::SlimPipe, 4, 2),
        layout_of(ScheduleKind::SlimPipe, 10, 2), layout_of(ScheduleKind::SlimPipe, 16, 2),
        layout_of(ScheduleKind::SlimPipe, 64, 4)}) {
    Cluster on = cluster_for(layout);
    on.hardware.efficiency.pipeline_exposed = 1;
    const double bytes =
        2 * group_tokens(w, layout) * static_cast<double>(w.model.shape.hidden);  // of a hidden state
    EXPECT_NEAR(closed_form(w, layout, on).transfers / stage_transfer(on.hardware, layout.mesh, bytes),
                simulated_transfers(w, layout), 1e-6)
        << print_layout(layout);
  }
}

// In the steady state of these schedules a device waits for its round trip through the pipeline.
TEST(StepCost, ExposesAsManyTransfersOfASteadyStateAsASimulation) {
  for (const ScheduleKind kind : {ScheduleKind::OneFOneB, ScheduleKind::Seq1F1B})
    for (const int p : {2, 3, 8})
      for (const int m : {1, 3, 8, 20})
        for (const int n : {1, 2, 5, 16}) {
          if (n > 1 && kind == ScheduleKind::OneFOneB) continue;
          Workload w = llama_7b(false);
          w.global_batch = m;
          w.model.shape.layers = 24;
          Layout layout = layout_on({.pipeline = p}, kind);
          layout.slices = n;
          EXPECT_NEAR(exposed_transfers(kind, pipeline_shape(w, layout), /*steady=*/true),
                      simulated_transfers(w, layout), 1e-6)
              << print_layout(layout) << " m" << m;
        }
}

// Copies so slow that all work waits for them.
TEST(StepCost, ChargesOnlyCopiesOfRecordsThatLeave) {
  const auto seconds = [](int pipeline, ScheduleKind schedule, int slices, double offload) {
    Layout layout = layout_on({.pipeline = pipeline}, schedule);
    layout.slices = slices;
    layout.offload = offload;
    Cluster on = cluster_for(layout);
    on.hardware.node.host_link_gbps = 1;
    const Workload w = llama_7b(false);
    return std::pair{closed_form(w, layout, on).copies, simulate_step(w, on, layout)->result.makespan};
  };
  for (const auto& [pipeline, schedule, slices] : {std::tuple{1, ScheduleKind::OneFOneB, 1},
                                                   {4, ScheduleKind::OneFOneB, 1},
                                                   {2, ScheduleKind::SlimPipe, 2},
                                                   {8, ScheduleKind::OneFOneB, 1},
                                                   {2, ScheduleKind::GPipe, 1},
                                                   {4, ScheduleKind::SlimPipe, 8}}) {
    const auto [copies, step] = seconds(pipeline, schedule, slices, 1);
    const Seconds waits = step - seconds(pipeline, schedule, slices, 0).second;
    EXPECT_NEAR(copies, waits, 0.15 * waits) << name_of(schedule) << " p" << pipeline;
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

// Where latencies are most of it, a pass for each chunk costs more than one pass over all of them.
TEST(StepCost, GradientSumsOfManyReplicasAndChunksAreOfAtLeastOnePass) {
  const Workload w = workload("llama2-7b", 4096, 4096);
  const sim::Hardware hardware = read_hardware("h800");
  for (const int replicas : {2, 64, 1024, 2048}) {
    Seconds before = 0;
    for (const int chunks : {16, 8, 4, 2, 1}) {
      const Layout layout{
          .mesh = {.data = replicas, .pipeline = 2}, .schedule = ScheduleKind::Interleaved, .chunks = chunks};
      const Seconds gradients = step_cost(w, layout, hardware, sim::kPenstock).gradients;
      EXPECT_GT(gradients, 0) << replicas << " replicas, " << chunks << " chunks";
      if (replicas == 2) {
        EXPECT_GE(gradients, before) << "less of it overlaps";
      }
      before = gradients;
    }
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
  const auto cost = [&](const mesh::Mesh& mesh, const ShardedWeights& shared, std::int64_t ffn = 14336) {
    Workload w = workload("mixtral-8x7b", 8192, 64);
    w.model.shape.ffn = ffn;
    return step_cost(w, {.mesh = mesh, .schedule = ScheduleKind::OneFOneB, .sharded = shared}, hardware,
                     engine);
  };
  const ShardedWeights all{.on = true}, copies{.on = true, .group = 4}, whole{.group = 1};
  const mesh::Mesh together{.data = 8}, apart{.expert = 8, .data = 8}, pairs{.expert = 2, .data = 8};
  for (const mesh::Mesh& mesh : {apart, pairs})
    EXPECT_NEAR(cost(mesh, all).optimizer / cost(together, all).optimizer, 1, 1e-9);
  EXPECT_NEAR(cost(pairs, copies).optimizer / cost(together, copies).optimizer, 1, 1e-9);
  EXPECT_DOUBLE_EQ(cost(apart, all).gradients, cost(apart, all, 28672).gradients) << "nobody has the same";
  EXPECT_LT(cost(pairs, all).gradients, cost(pairs, all, 28672).gradients);
  EXPECT_NEAR(cost(pairs, whole).optimizer, cost({.expert = 2, .data = 2}, whole).optimizer, 1e-12);
}

}  // namespace
}  // namespace penstock::plan
