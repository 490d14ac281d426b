// SPDX-License-Identifier: Apache-2.0
#include "plan/simulated_step.h"

#include <algorithm>
#include <memory>

#include "schedule/generators/generator.h"
#include "schedule/placement.h"
#include "sim/costs/analytic.h"
#include "sim/lowering.h"

namespace penstock::plan {
namespace {

// The layout as a run; kernels stay unset, as memory is not simulated.
sim::Work work_of(const Workload& workload, const Layout& layout, const schedule::Schedule& schedule) {
  sim::Work work{.shape = workload.model.shape,
                 .mesh = layout.mesh,
                 .layers = model::split_layers(workload.model.shape.layers, schedule.stages),
                 .sequences = layout.micro_batch,
                 .precision = workload.precision,
                 .vocabulary_parallel = layout.vocabulary_parallel};
  work.shape.vocab = padded_vocabulary(work.shape.vocab, layout.mesh.tensor);
  const schedule::Placement placement(schedule);
  for (int stage = 0; stage < schedule.stages; ++stage) work.devices.push_back(placement.device_of(stage, 0));
  work.slices.assign(schedule.slices.size(), model::cut_into_slices(workload.seq_len, layout.slices));
  const bool cached = layout.slices > 1;
  work.keep.assign(static_cast<std::size_t>(work.shape.layers),
                   cached ? layout.keep.with(model::SavedTensor::KeyValue) : layout.keep);
  return work;
}

}  // namespace

std::int64_t action_count(const Workload& workload, const Layout& layout) {
  const std::int64_t kinds = splits_backward(layout.schedule) ? 3 : 2;
  return kinds * micro_batches(workload, layout) * layout.slices * layout.chunks * layout.mesh.pipeline;
}

SimulatedPipeline simulate_pipeline(const Workload& workload, const Cluster& cluster, const Layout& layout) {
  const PipelineShape shape = pipeline_shape(workload, layout);
  const auto generated =
      schedule::generate(name_of(layout.schedule),
                         schedule::request(shape.devices, shape.micro_batches, shape.slices, shape.chunks));
  const sim::Work work = work_of(workload, layout, generated);
  const sim::AnalyticCosts costs(
      work, cluster.hardware, cluster.engine,
      {.level_attention = layout.exchange != ExchangeMode::Off, .family = workload.model.family});
  sim::ResultOptions options;
  options.imbalance = false;
  options.memory = false;
  schedule::Lowering lowering = sim::lowering_of(std::make_shared<const sim::RunBytes>(work));
  lowering.optimizer_step = false;
  SimulatedPipeline simulated{schedule::lower(generated, lowering), {}};
  simulated.result = sim::evaluate(simulated.program, costs, options);
  return simulated;
}

Seconds simulated_step(const Workload& workload, const Cluster& cluster, const Candidate& candidate) {
  const StepCost& cost = candidate.cost;
  const double paired = candidate.layout.exchange == ExchangeMode::Paired ? cost.imbalance : 0.0;
  return simulate_pipeline(workload, cluster, candidate.layout).result.makespan + paired + cost.exchange +
         cost.copies + cost.gradients + cost.optimizer + cost.fixed;
}

void simulate_best(const Workload& workload, const Cluster& cluster, std::vector<Candidate>& best,
                   std::size_t count) {
  count = std::min(count, best.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (action_count(workload, best[i].layout) > kMostSimulatedActions) continue;
    best[i].simulated = simulated_step(workload, cluster, best[i]);
  }
  std::stable_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(count),
                   [](const Candidate& a, const Candidate& b) { return a.step() < b.step(); });
}

}  // namespace penstock::plan
