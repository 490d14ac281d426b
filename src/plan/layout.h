// SPDX-License-Identifier: Apache-2.0
// One way to run a workload on a cluster: a candidate of the search.
#pragma once

#include "model/memory/policy.h"
#include "model/memory/terms.h"
#include "plan/in_flight.h"
#include "plan/models.h"
#include "schedule/exchange/plan.h"
#include "sim/costs/layer_cost.h"

namespace penstock::plan {

struct Workload {
  Model model;
  Tokens seq_len = 0;
  std::int64_t global_batch = 1;  // sequences per step
  model::Precision precision = model::Precision::BF16;
};

using schedule::ExchangeMode;

struct Layout {
  mesh::Mesh mesh;
  ScheduleKind schedule = ScheduleKind::SlimPipe;
  int micro_batch = 1;  // sequences
  int slices = 1;       // n
  int chunks = 1;       // v
  model::KeepSet keep;
  bool recompute_scores = false;  // plain attention recomputes scores (Korthikanti et al.'s "selective")
  double offload = 0;             // α
  bool vocabulary_parallel = false;
  ExchangeMode exchange = ExchangeMode::Off;

  friend bool operator==(const Layout&, const Layout&) = default;
};

// m: micro-batches per pipeline.
inline std::int64_t micro_batches(const Workload& workload, const Layout& layout) {
  return workload.global_batch / (static_cast<std::int64_t>(layout.mesh.data) * layout.micro_batch);
}

inline PipelineShape pipeline_shape(const Workload& workload, const Layout& layout) {
  return {layout.mesh.pipeline, static_cast<int>(micro_batches(workload, layout)), layout.slices,
          layout.chunks};
}

// Tokens of a slice per tensor-parallel group: b·s/(n·c).
inline double group_tokens(const Workload& workload, const Layout& layout) {
  return static_cast<double>(layout.micro_batch * workload.seq_len) / layout.slices / layout.mesh.context;
}

// A slice with average attention: causal over itself, plus half of the other slices. Full recomputation
// counts as one whole forward.
inline sim::LayerSlice average_slice(const Workload& workload, const Layout& layout) {
  const auto sequence = static_cast<double>(workload.seq_len);
  return {.shape = workload.model.shape,
          .mesh = layout.mesh,
          .family = workload.model.family,
          .keep = layout.keep,
          .tokens = group_tokens(workload, layout),
          .own = sequence / layout.slices,
          .earlier = 0.5 * (layout.slices - 1),
          .sequence = sequence,
          .sliced = layout.slices > 1,
          .whole_again = layout.keep == model::keep_of(model::Policy::Full),
          .recompute_scores = layout.recompute_scores};
}

// Layers of the heaviest chunk.
inline std::int64_t chunk_layers(const Workload& workload, const Layout& layout) {
  const std::int64_t stages = static_cast<std::int64_t>(layout.mesh.pipeline) * layout.chunks;
  return (workload.model.shape.layers + stages - 1) / stages;
}

}  // namespace penstock::plan
