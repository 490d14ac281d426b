// SPDX-License-Identifier: Apache-2.0
#include "plan/trainers/beyond.h"

#include <algorithm>

namespace penstock::plan {
namespace {

using model::KeepSet;
using T = model::SavedTensor;

constexpr KeepSet kProducts =
    KeepSet{}.with(T::LayerInput).with(T::Query).with(T::KeyValue).with(T::AttentionOutput);

struct Kept {
  KeepSet keep, others;
  double recomputed;
  friend bool operator==(const Kept&, const Kept&) = default;
};

Kept every_second_product(const Workload& workload) {
  if (workload.model.shape.experts > 1) return {kProducts, model::keep_of(model::Policy::None), 1};
  return {kProducts, kProducts.with(T::NormTwoInput).with(T::GateUp), 0.5};
}

}  // namespace

void apply(const Beyond& beyond, Question& question) {
  sim::Engine& engine = question.cluster.engine;
  if (!beyond.model.empty()) question.workload.model.name = beyond.model;
  if (beyond.compiled) engine.elementwise *= engine.compiled;
  if (beyond.looped_experts) engine.grouped_experts = false;
}

void apply(const Beyond& beyond, const Workload& workload, Layout& layout) {
  layout.ends = beyond.ends;
  if (beyond.copies > 1) layout.sharded.group = layout.mesh.replicas() / beyond.copies;
  layout.whole_hidden = beyond.whole_hidden;
  if (beyond.whole_states) layout.sharded.group = 1;
  if (beyond.regathers) layout.sharded.asked = *beyond.regathers;
  if (beyond.recomputed == Recomputed::EverySo) recompute_every(beyond.every, workload, layout);
  if (beyond.recomputed == Recomputed::Scores) layout.recompute_scores = true;
  if (beyond.recomputed == Recomputed::FirstOfStage) recompute_first(beyond.every, workload, layout);
  if (beyond.recomputed == Recomputed::EverySecondOp) recompute_every_second_product(workload, layout);
}

void recompute_every(std::int64_t every, const Workload& workload, Layout& layout) {
  std::int64_t most = 0;
  for (int rank = 0; rank < layout.mesh.pipeline; ++rank)
    most = std::max(most, device_layers(workload, layout, rank));
  layout.keep = model::keep_of(model::Policy::Full);
  layout.others = model::keep_of(model::Policy::None);
  layout.recomputed = static_cast<double>(most / every) / static_cast<double>(most);
}

void recompute_first(std::int64_t layers, const Workload& workload, Layout& layout) {
  const std::int64_t all = chunk_layers(workload, layout);
  layout.recompute_scores = false;
  layout.keep = model::keep_of(model::Policy::Full);
  layout.others = model::keep_of(model::Policy::None);
  layout.recomputed = static_cast<double>(std::min(layers, all)) / static_cast<double>(all);
}

void recompute_every_second_product(const Workload& workload, Layout& layout) {
  const Kept kept = every_second_product(workload);
  layout.keep = kept.keep;
  layout.others = kept.others;
  layout.recomputed = kept.recomputed;
}

bool recomputes_every_second_product(const Workload& workload, const Layout& layout) {
  return Kept{layout.keep, layout.others, layout.recomputed} == every_second_product(workload);
}

}  // namespace penstock::plan
