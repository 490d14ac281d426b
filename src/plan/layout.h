// SPDX-License-Identifier: Apache-2.0
// One way to run a workload on a cluster: what a search chooses.
#pragma once

#include "model/memory_policy.h"
#include "model/memory_terms.h"
#include "plan/in_flight.h"
#include "plan/models.h"

namespace penstock::plan {

struct Workload {
  Model model;
  Tokens seq_len = 0;
  std::int64_t global_batch = 1;  // sequences a step
  model::Precision precision = model::Precision::BF16;
};

enum class Exchange : std::uint8_t { Off, Paired, Levelled };
inline constexpr std::array<std::string_view, 3> kExchangeNames{"off", "paired", "levelled"};

struct Layout {
  model::Spread spread;
  ScheduleKind schedule = ScheduleKind::SlimPipe;
  int micro_batch = 1;  // sequences
  int slices = 1;       // n
  int chunks = 1;       // v
  model::KeepSet keep;
  bool recompute_scores = false;  // plain attention keeps no scores (Korthikanti et al.'s "selective")
  double offload = 0;             // α
  bool vocabulary_parallel = false;
  Exchange exchange = Exchange::Off;

  friend bool operator==(const Layout&, const Layout&) = default;
};

// m: micro-batches of one pipeline.
inline std::int64_t micro_batches(const Workload& workload, const Layout& layout) {
  return workload.global_batch / (static_cast<std::int64_t>(layout.spread.data) * layout.micro_batch);
}

inline PipelineShape pipeline_shape(const Workload& workload, const Layout& layout) {
  return {layout.spread.pipeline, static_cast<int>(micro_batches(workload, layout)), layout.slices,
          layout.chunks};
}

// Tokens of a slice that one tensor-parallel group multiplies together: b·s/(n·c).
inline double group_tokens(const Workload& workload, const Layout& layout) {
  return static_cast<double>(layout.micro_batch * workload.seq_len) / layout.slices / layout.spread.context;
}

// Layers of the heaviest chunk.
inline std::int64_t chunk_layers(const Workload& workload, const Layout& layout) {
  const std::int64_t stages = static_cast<std::int64_t>(layout.spread.pipeline) * layout.chunks;
  return (workload.model.shape.layers + stages - 1) / stages;
}

}  // namespace penstock::plan
