// SPDX-License-Identifier: Apache-2.0
// The planner's closed forms next to the trainer's predictions, action by action, over random legal layouts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "plan/constraints.h"
#include "plan/layout_memory.h"
#include "plan/plan_print.h"
#include "plan/run_file.h"
#include "plan/simulated_step.h"
#include "questions.h"
#include "run/lowering.h"
#include "run/memory.h"
#include "run/resolve/resolve.h"

namespace penstock::plan {
namespace {

class Chance {
 public:
  template <class T>
  T of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  std::size_t below(std::size_t count) {
    return static_cast<std::size_t>(uniform(20261122, drawn_++) * static_cast<double>(count));
  }

 private:
  std::uint64_t drawn_ = 0;
};

Workload any_workload(Chance& chance) {
  Workload workload{find_model(chance.of({"llama-7b", "llama-13b", "llama-70b-gqa", "mixtral-8x7b"})),
                    chance.of<Tokens>({8192, 32768, 131072}), chance.of<std::int64_t>({8, 16, 32})};
  workload.model.shape.layers = chance.of<std::int64_t>({24, 30, 32, 40});
  workload.gpu = chance.of({false, true});
  return workload;
}

Layout any_layout(const Workload& workload, Chance& chance) {
  Layout layout;
  layout.mesh = {.tensor = chance.of({1, 2, 4, 8}),
                 .context = chance.of({1, 2, 4}),
                 .data = chance.of({1, 2, 4}),
                 .pipeline = chance.of({1, 2, 4, 8})};
  const std::vector<ScheduleKind> all = all_schedules();
  const ScheduleKind any = all[chance.below(all.size())];
  layout.schedule = chance.of({any, any, any, any, ScheduleKind::SlimPipe});
  layout.micro_batch = chance.of({1, 1, 2});
  layout.slices = chance.of({1, 4, 8, 16});
  layout.chunks = chance.of({1, 2, 4});
  layout.keep = keep_of(chance.of(
      {model::Policy::None, model::Policy::Balanced, model::Policy::BalancedFc1, model::Policy::Full}));
  layout.vocabulary_parallel = chance.of({false, true});
  layout.offload = chance.of({0.0, 0.0, 0.3, 0.7, 1.0});
  if (takes_output(layout)) layout.output = output_in_layers(workload, layout);
  return layout;
}

TEST(ClosedForm, OfTheLayersOfADeviceIsTheRunsSplit) {
  Chance chance;
  for (int seen = 0; seen < 600;) {
    Workload workload = any_workload(chance);
    workload.model.shape.layers = chance.of<std::int64_t>({24, 30, 37, 40, 61, 90});
    const Layout layout = any_layout(workload, chance);
    if (reject(workload, layout, 8)) continue;
    ++seen;
    const run::Run run = run::lay_out(options_of(workload, layout), {});
    std::vector<std::int64_t> layers(layout.mesh.pipeline);
    std::int64_t most = 0;
    for (int stage = 0; stage < run.stages(); ++stage) {
      layers[run.device_of_stage[stage]] += run.layers[stage].count;
      most = std::max(most, run.layers[stage].count);
    }
    EXPECT_EQ(chunk_layers(workload, layout), most) << print_layout(layout);
    for (int rank = 0; rank < layout.mesh.pipeline; ++rank)
      EXPECT_EQ(device_layers(workload, layout, rank), layers[rank])
          << print_layout(layout) << " device " << rank << " of " << workload.model.shape.layers
          << " layers, output " << layout.output;
  }
}

// Models of few layers with many words, on more devices than micro-batches fill: the last device takes
// several times as long as the others, which the ramps wait for.
TEST(ClosedForm, OfTimeIsNearTheSimulatedStepWhereTheOutputLayerTakesSeveralLayers) {
  for (const auto& [model, sequences] : {std::pair{"llama3-8b", 4}, {"llama3-8b", 16}, {"llama-7b", 4}}) {
    Workload w = workload(model, 4096, sequences);
    w.gpu = true;
    for (const int devices : {8, 16, 32}) {
      Layout layout{.mesh = {.pipeline = devices},
                    .schedule = ScheduleKind::OneFOneB,
                    .keep = model::keep_of(model::Policy::None)};
      layout.output = output_in_layers(w, layout);
      const Cluster on = cluster(devices);
      const auto step = simulate_step(w, on, layout);
      ASSERT_TRUE(step) << print_layout(layout);
      const double closed = step_cost(w, layout, on.hardware, on.engine).total();
      EXPECT_NEAR(closed / step->result.makespan, 1, 0.03) << model << " " << print_layout(layout);
    }
  }
}

// Only a filter: what is planned is predicted action by action before it is ranked. Uneven stages, weight
// records and single micro-batches are where the closed form is rough.
TEST(ClosedForm, OfMemoryIsNearTheTrainersPredictionOverRandomLayouts) {
  Chance chance;
  int seen = 0, near = 0, fair = 0, below = 0;
  for (; seen < 200;) {
    const Workload workload = any_workload(chance);
    const Layout layout = any_layout(workload, chance);
    if (reject(workload, layout, 8)) continue;
    ++seen;
    run::Options options = options_of(workload, layout);
    if (workload.gpu) options.train.device = "cuda";
    run::Run run = run::lay_out(std::move(options), {});
    run.program = run::program_of(run);
    const model::MemoryTable predicted = run::predict_memory(run, run.program);
    const Bytes trainers = predicted[run::fullest_device(predicted)].total();
    const Bytes closed = fit_memory(workload, layout, 1e15).fullest.total();
    const double error = static_cast<double>(closed) / static_cast<double>(trainers) - 1;
    near += std::abs(error) <= 0.02;
    fair += std::abs(error) <= 0.05;
    below += error < -0.05;
    EXPECT_LT(std::abs(error), 0.45) << print_layout(layout);
  }
  EXPECT_GE(near, seen / 2);
  EXPECT_GE(fair, seen * 7 / 10);
  EXPECT_LE(below, seen / 8);
  RecordProperty("within 2 %", near);
  RecordProperty("within 5 %", fair);
  RecordProperty("more than 5 % below", below);
}

// Only a filter as well: the fastest are simulated. Unequal slices and split backwards are where it is rough.
TEST(ClosedForm, OfTimeIsNearTheSimulatedStepOverRandomLayouts) {
  Chance chance;
  int seen = 0, near = 0, fair = 0;
  for (; seen < 400;) {
    Workload workload = any_workload(chance);
    workload.model.shape.layers = chance.of<std::int64_t>({16, 24, 30, 37, 40, 61, 90});
    workload.model.shape.vocab = chance.of<std::int64_t>({32000, 128256});
    Layout layout = any_layout(workload, chance);
    layout.offload = 0;
    if (reject(workload, layout, 8)) continue;
    const Cluster on = cluster(layout.mesh.world());
    const auto step = simulate_step(workload, on, layout);
    if (!step) continue;
    ++seen;
    const StepCost cost = step_cost(workload, layout, on.hardware, on.engine);
    const double error = cost.total() / step->result.makespan - 1;
    near += std::abs(error) <= 0.02;
    fair += std::abs(error) <= 0.1;
    EXPECT_LT(std::abs(error), 0.3) << print_layout(layout);
  }
  EXPECT_GE(near, seen * 6 / 10);
  EXPECT_GE(fair, seen * 95 / 100);
  RecordProperty("within 2 %", near);
  RecordProperty("within 10 %", fair);
}

}  // namespace
}  // namespace penstock::plan
