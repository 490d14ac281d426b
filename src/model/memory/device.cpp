// SPDX-License-Identifier: Apache-2.0
#include "model/memory/device.h"

#include <cmath>

namespace penstock::model {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }
Bytes rounded(double bytes) { return static_cast<Bytes>(std::llround(bytes)); }

// Peak of the gradients between operations of one layer, in the MLP: of the product, silu's output, gate and
// up (2·k·f each), and the hidden state.
double working_bytes(const Shape& shape, Bytes element) {
  return as_double((4 * shape.experts_per_token * shape.ffn + 2 * shape.hidden) * element);
}

double transient_bytes(const MemoryPlan& plan) {
  const Bytes element = element_size(plan.precision);
  const double recomputed = as_double(recomputed_bytes(plan.shape, plan.keep, element, plan.slices > 1));
  return (recomputed + working_bytes(plan.shape, element)) * slice_tokens(plan);
}

// Hidden-state gradients of one micro-batch on the last device, and the logits of a tile in f32 with their
// gradient in the weight type (two tiles under vocabulary parallelism, where one is gathered while the next
// is computed).
double logits_bytes(const MemoryPlan& plan, const DeviceLoad& load) {
  if (!load.last && !plan.vocabulary_parallel) return 0.0;
  const Bytes element = element_size(plan.precision);
  const double shards = plan.mesh.tensor * (plan.vocabulary_parallel ? plan.mesh.pipeline : 1);
  const double tiles = plan.vocabulary_parallel ? 2.0 : 1.0;
  const double tile = tiles * as_double(plan.loss_tile * plan.shape.vocab * (4 + element)) / shards;
  const double hidden = as_double(plan.shape.hidden * element) * slice_tokens(plan) * plan.slices;
  return tile + (load.last ? hidden : 0.0);
}

}  // namespace

double slice_tokens(const MemoryPlan& plan) {
  return as_double(plan.micro_batch * plan.seq_len) / plan.slices / plan.mesh.tensor / plan.mesh.context;
}

RecordSize record_size(const MemoryPlan& plan, double layers_per_chunk) {
  const Bytes element = element_size(plan.precision);
  const bool cached = plan.slices > 1;
  const double unit = layers_per_chunk * slice_tokens(plan);
  const double keys = cached ? as_double(key_value_bytes(plan.shape, element)) : 0.0;
  const double statistics =
      as_double(statistics_bytes(plan.shape, plan.keep, accumulator_size(plan.precision)));
  return {(as_double(kept_bytes(plan.shape, plan.keep, element, cached)) - keys) * unit,
          (keys + statistics) * unit};
}

DeviceMemory device_memory(const MemoryPlan& plan, const DeviceLoad& load) {
  const double layers = load.layers / plan.chunks;
  const LocalParameters parameters = local_parameters(plan.shape, plan.mesh, load.layers, load.embeddings);
  const RecordSize record = record_size(plan, layers);
  const double gone = plan.offload * offloaded_records(load.records) * record.leaving;
  const double buffers = gone > 0 ? 2.0 * plan.offload * record.leaving : 0.0;
  const double tokens = slice_tokens(plan);
  const Bytes element = element_size(plan.precision);

  DeviceMemory memory;
  memory.weights = rounded(weight_bytes(parameters, plan.precision));
  memory.gradients = rounded(gradient_bytes(parameters, plan.precision));
  memory.optimizer = rounded(optimizer_bytes(parameters, plan.mesh, plan.precision));
  memory.activations = rounded(load.records * record.total() - gone - buffers);
  memory.copies = rounded(buffers);
  memory.host = rounded(gone);
  memory.weight_records = rounded(load.weight_records * layers * tokens *
                                  as_double(kept_bytes(plan.shape, keep_of(Policy::None), element)));
  memory.kv_gradients = rounded(load.kv_gradients * layers * tokens *
                                as_double(key_value_bytes(plan.shape, accumulator_size(plan.precision))));
  memory.logits = rounded(logits_bytes(plan, load));
  memory.transient = rounded(transient_bytes(plan));
  memory.transfers = rounded((load.queued + 2.0) * tokens * as_double(plan.shape.hidden * element));
  return memory;
}

}  // namespace penstock::model
