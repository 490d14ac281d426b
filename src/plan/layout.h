// SPDX-License-Identifier: Apache-2.0
// One way to run a workload on a cluster: a candidate of the search.
#pragma once

#include <optional>

#include "model/memory/context_traffic.h"
#include "model/memory/policy.h"
#include "model/memory/terms.h"
#include "plan/in_flight.h"
#include "plan/models.h"
#include "schedule/exchange/plan.h"
#include "sim/costs/layer_cost.h"

namespace penstock::plan {

// What a trainer's code holds in memory where trainers differ; our own by default.
struct MemoryHabits {
  double logit_bytes = 0;            // per logit of a micro-batch while its loss is computed; 0: tile by tile
  double cut_logit_bytes = 0;        // the same of logits that tensor ranks cut
  bool whole_output_input = false;   // tensor ranks hold the output layer's whole input until its backward
  bool repeatable_attention = true;  // on GPUs, gradients of attention are sums in a fixed order
  bool two_tied_gradients = true;    // of the embedding as input and as output, where one device has both
};

struct Workload {
  Model model;
  Tokens seq_len = 0;
  std::int64_t global_batch = 1;  // sequences per step
  model::Precision precision = model::Precision::BF16;
  bool gpu = false;        // else it runs on a CPU
  double expert_load = 1;  // rows of the busiest expert rank over the mean
  double seen = 1;         // fraction of causal attention that documents or windows leave
  MemoryHabits habits;
};

using schedule::ExchangeMode;

// Weights sharded over replicas and gathered before use, as in FSDP and ZeRO-3.
struct ShardedWeights {
  bool on = false;
  bool regathers = true;      // gathers again for the backward; else weights stay from the forward
  bool stays = false;         // gathers once per step, not per micro-batch; excludes `regathers`
  std::optional<bool> asked;  // a configuration's own `regathers`, overrides the trainer's (adapt)
  std::int64_t group = 0;     // replicas that shard one set of states, with sharded weights or not; 0: all,
                              // 1: each has a full set

  friend bool operator==(const ShardedWeights&, const ShardedWeights&) = default;
};

// Weights of the embedding (first stage) and output layer (last stage), in layers, when layers are split over
// stages. As in torchtitan, stages get equal sums, and the first ones get the remainder, one each.
struct EndWeights {
  int first = 0, last = 0;
  friend bool operator==(const EndWeights&, const EndWeights&) = default;
};

struct Layout {
  mesh::Mesh mesh;
  ScheduleKind schedule = ScheduleKind::SlimPipe;
  int micro_batch = 1;  // sequences
  int slices = 1;       // n
  int chunks = 1;       // v
  int group = 0;        // g, slices per group of interleaved slimpipe; 0: the schedule's choice
  model::KeepSet keep;
  bool recompute_scores = false;  // plain attention recomputes scores (Korthikanti et al.'s "selective")
  double recomputed = 1;          // share of the layers to which `keep` applies
  model::KeepSet others = model::keep_of(model::Policy::None);  // what the other layers keep
  bool whole_hidden = false;  // no sequence parallelism: each tensor rank holds whole hidden states
  bool cut_experts = false;   // tensor ranks split each expert; else it is whole on a rank
  double offload = 0;         // α
  bool vocabulary_parallel = false;
  ExchangeMode exchange = ExchangeMode::Off;
  double output = 0;               // work of the output layer, in layers, for an uneven split; 0: even split
  std::optional<EndWeights> ends;  // instead of `output`
  ShardedWeights sharded;

  friend bool operator==(const Layout&, const Layout&) = default;
};

// m: micro-batches per pipeline.
inline std::int64_t micro_batches(const Workload& workload, const Layout& layout) {
  return workload.global_batch / (static_cast<std::int64_t>(layout.mesh.data) * layout.micro_batch);
}

inline PipelineShape pipeline_shape(const Workload& workload, const Layout& layout) {
  return {layout.mesh.pipeline, static_cast<int>(micro_batches(workload, layout)), layout.slices,
          layout.chunks, layout.group};
}

// Tokens of a slice per tensor-parallel group: b·s/(n·c).
inline double group_tokens(const Workload& workload, const Layout& layout) {
  return static_cast<double>(layout.micro_batch * workload.seq_len) / layout.slices / layout.mesh.context;
}

// True if one of several stages holds the output layer and stages may have unequal numbers of layers.
inline bool takes_output(const Layout& layout) {
  return layout.mesh.pipeline > 1 && !layout.vocabulary_parallel && layout.exchange == ExchangeMode::Off;
}

// Layout::output as a run computes it (run/layer_split.h). For layouts with takes_output().
double output_in_layers(const Workload& workload, const Layout& layout);

// A slice with average attention: causal over itself, plus half of the other slices.
inline sim::LayerSlice average_slice(const Workload& workload, const Layout& layout) {
  const auto sequence = static_cast<double>(workload.seq_len);
  return {.shape = workload.model.shape,
          .mesh = layout.mesh,
          .context = model::automatic_split(model::shape_of_rank(workload.model.shape, layout.mesh.tensor),
                                            layout.mesh.context),
          .family = workload.model.family,
          .keep = layout.keep,
          .tokens = group_tokens(workload, layout),
          .own = sequence / layout.slices,
          .seen = workload.seen,
          .earlier = 0.5 * (layout.slices - 1),
          .sequence = sequence,
          .expert_load = workload.expert_load,
          .sliced = layout.slices > 1,
          .recompute_scores = layout.recompute_scores};
}

inline std::int64_t stages_of(const Layout& layout) {
  return static_cast<std::int64_t>(layout.mesh.pipeline) * layout.chunks;
}

// The device of the last stage.
inline int last_device(const Layout& layout) {
  return is_v_shaped(layout.schedule) ? 0 : layout.mesh.pipeline - 1;
}

// Layers of the heaviest stage, and of all stages of a device, by the layout's `output` or `ends`. Need at
// least one layer per stage.
std::int64_t chunk_layers(const Workload& workload, const Layout& layout);
std::int64_t device_layers(const Workload& workload, const Layout& layout, int rank);

// The first of the devices without the last stage that have most layers; 0 for a single device. Needs
// even stages but for that one: layout.ends may give more to a device in the middle.
int fullest_rank(const Workload& workload, const Layout& layout);

}  // namespace penstock::plan
