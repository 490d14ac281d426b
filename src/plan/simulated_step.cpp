// SPDX-License-Identifier: Apache-2.0
#include "plan/simulated_step.h"

#include <algorithm>

#include "plan/groups.h"
#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"

namespace penstock::plan {
namespace {

using schedule::OpKind;

// Times of one slice-chunk with the attention of an average slice, and what attention adds per slice of keys.
class LayoutCosts final : public sim::Costs {
 public:
  LayoutCosts(const Workload& workload, const Cluster& cluster, const Layout& layout)
      : layer_(layer_cost(workload, layout, cluster.hardware, cluster.engine)),
        layers_(static_cast<double>(chunk_layers(workload, layout))),
        last_stage_(layout.spread.pipeline * layout.chunks - 1),
        slices_(layout.slices),
        shared_(layout.vocabulary_parallel),
        levelled_(layout.exchange != Exchange::Off) {
    const double shards = shared_ ? layout.spread.pipeline : 1.0;
    output_ = output_layer_slice(workload, layout, cluster.hardware, cluster.engine, shards) /
              (shared_ ? layout.chunks : 1);
    const double bytes = hidden_state_bytes(workload, layout);
    const Seconds whole = stage_transfer(cluster.hardware, layout.spread, bytes);
    const Seconds bare = stage_transfer(cluster.hardware, layout.spread, 0);
    transfer_ = {whole - bare, bare};
  }

  Seconds seconds(int, std::uint32_t, const schedule::Op& op) const override {
    switch (op.kind) {
      case OpKind::Forward:
        return layers_ * slice_seconds(layer_.forward, op.slice) + output_of(op.stage) / 3;
      case OpKind::Backward:
        return backward(op);
      case OpKind::BackwardInput:
        return backward(op) - layers_ * layer_.weights;
      case OpKind::BackwardWeight:
        return layers_ * layer_.weights;
      default:
        return 0;
    }
  }

  sim::Transfer transfer(int, std::uint32_t, const schedule::Op&) const override { return transfer_; }
  sim::RecordBytes record(int, int, int) const override { return {}; }

 private:
  // Slice i attends to i earlier slices and half of itself: (2i + 1)/n of the average.
  Seconds slice_seconds(const LayerTerms& terms, int slice) const {
    const double length = levelled_ ? 1.0 : (2.0 * slice + 1.0) / slices_;
    return terms.total() + terms.attention * (length - 1);
  }
  Seconds backward(const schedule::Op& op) const {
    return layers_ * (slice_seconds(layer_.backward, op.slice) + slice_seconds(layer_.recompute, op.slice)) +
           output_of(op.stage) * 2 / 3;
  }
  Seconds output_of(int stage) const { return shared_ || stage == last_stage_ ? output_ : 0.0; }

  LayerCost layer_;
  double layers_;
  int last_stage_;
  double slices_;
  bool shared_, levelled_;
  Seconds output_ = 0;
  sim::Transfer transfer_;
};

}  // namespace

std::int64_t action_count(const Workload& workload, const Layout& layout) {
  const std::int64_t kinds = splits_backward(layout.schedule) ? 3 : 2;
  return kinds * micro_batches(workload, layout) * layout.slices * layout.chunks * layout.spread.pipeline;
}

SimulatedPipeline simulate_pipeline(const Workload& workload, const Cluster& cluster, const Layout& layout) {
  const PipelineShape shape = pipeline_shape(workload, layout);
  const auto generated =
      schedule::generate(name_of(layout.schedule),
                         schedule::request(shape.devices, shape.micro_batches, shape.slices, shape.chunks));
  schedule::Lowering lowering;
  lowering.optimizer_step = false;
  sim::ResultOptions options;
  options.imbalance = false;
  options.memory = false;
  SimulatedPipeline simulated{schedule::lower(generated, lowering), {}};
  simulated.result = sim::evaluate(simulated.program, LayoutCosts(workload, cluster, layout), options);
  return simulated;
}

Seconds simulated_step(const Workload& workload, const Cluster& cluster, const Candidate& candidate) {
  const StepCost& cost = candidate.cost;
  const double paired = candidate.layout.exchange == Exchange::Paired ? cost.imbalance : 0.0;
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
