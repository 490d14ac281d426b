// SPDX-License-Identifier: Apache-2.0
#include "plan/trainer_choices.h"

#include <algorithm>

#include "base/whole.h"

namespace penstock::plan {
namespace {

using model::KeepSet;
using T = model::SavedTensor;

constexpr KeepSet kProducts =
    KeepSet{}.with(T::LayerInput).with(T::Query).with(T::KeyValue).with(T::AttentionOutput);

struct Kept {
  KeepSet keep, others;
  double recomputed;
};

Kept every_second_product(const Workload& workload) {
  if (workload.model.shape.experts > 1) return {kProducts, model::keep_of(model::Policy::None), 1};
  return {kProducts, kProducts.with(T::NormTwoInput).with(T::GateUp), 0.5};
}

std::int64_t most_layers_of_a_device(const Workload& workload, const Layout& layout) {
  std::int64_t most = 0;
  for (int rank = 0; rank < layout.mesh.pipeline; ++rank)
    most = std::max(most, device_layers(workload, layout, rank));
  return most;
}

void recompute_whole_layers(double share, Layout& layout) {
  layout.recompute_scores = false;
  layout.keep = model::keep_of(model::Policy::Full);
  layout.others = model::keep_of(model::Policy::None);
  layout.recomputed = share;
}

}  // namespace

void recompute_every(std::int64_t every, const Workload& workload, Layout& layout) {
  const std::int64_t most = most_layers_of_a_device(workload, layout);
  recompute_whole_layers(static_cast<double>(most / every) / static_cast<double>(most), layout);
}

void recompute_first(std::int64_t layers, const Workload& workload, Layout& layout) {
  const std::int64_t all = chunk_layers(workload, layout);
  recompute_whole_layers(static_cast<double>(std::min(layers, all)) / static_cast<double>(all), layout);
}

void recompute_every_second_product(const Workload& workload, Layout& layout) {
  const Kept kept = every_second_product(workload);
  layout.keep = kept.keep;
  layout.others = kept.others;
  layout.recomputed = kept.recomputed;
}

bool recomputes_every_second_product(const Layout& layout) { return layout.keep == kProducts; }

std::vector<Layout> partly_recomputed(const Trainer& trainer, const Workload& workload,
                                      const Layout& layout) {
  std::vector<Layout> found;
  if (trainer.recomputes_products) {
    const std::int64_t layers = most_layers_of_a_device(workload, layout);
    // The next smaller interval with another number of layers, one more if there is such an interval.
    for (std::int64_t every = layers; every > 1; every = layers / (layers / every + 1))
      recompute_every(every, workload, found.emplace_back(layout));
    recompute_every_second_product(workload, found.emplace_back(layout));
  } else {
    const std::int64_t layers = chunk_layers(workload, layout), step = ceil_div(layers, kMostParts);
    for (std::int64_t first = step; first < layers; first += step)
      recompute_first(first, workload, found.emplace_back(layout));
  }
  return found;
}

std::vector<ShardedWeights> shardings_to_try(const Trainer& trainer, const Layout& layout) {
  std::vector<ShardedWeights> found{layout.sharded};
  if (!trainer.shards_weights || layout.mesh.replicas() == 1) return found;
  for (std::int64_t copies = 1; copies < layout.mesh.replicas(); copies *= 2) {
    if (layout.mesh.data % copies != 0) break;
    for (const bool regathers : {true, false}) {
      ShardedWeights other = layout.sharded;
      other.group = copies > 1 ? layout.mesh.replicas() / copies : 0;
      if (regathers != (layout.mesh.pipeline == 1)) other.asked = regathers;  // not the trainer's default
      if (other != found.front()) found.push_back(other);
    }
  }
  return found;
}

}  // namespace penstock::plan
