// SPDX-License-Identifier: Apache-2.0
#include "plan/device_memory.h"

#include <algorithm>
#include <cmath>

#include "run/machine.h"
#include "sim/costs/bytes.h"

namespace penstock::plan {
namespace {

// Caps at 1e17, more than any device has, so that a sum of ten fits in 64 bits.
Bytes rounded(double bytes) { return static_cast<Bytes>(std::llround(std::min(bytes, 1e17))); }

bool has_gelu(const Workload& workload) { return workload.model.family == Family::Gpt; }

// One device's share of a layout.
class DeviceShare {
 public:
  DeviceShare(const Workload& workload, const Layout& layout)
      : layout_(layout),
        shape_(sim::shape_of_ranks(workload.model.shape, layout.mesh.tensor)),
        gelu_(has_gelu(workload)),
        element_(element_size(workload.precision)),
        accumulator_(accumulator_size(workload.precision)),
        loss_tile_(model::usual_loss_tile(workload.gpu)),
        tokens_(group_tokens(workload, layout) / layout.mesh.tensor),
        key_copies_(key_copies(workload, layout)),
        vocab_(workload.model.shape.vocab),
        habits_(workload.habits) {}

  RecordSize record(double layers) const {
    const double share = layout_.recomputed;
    const RecordSize own = record_of(layout_.keep, layers * share);
    if (share == 1) return own;
    const RecordSize others = record_of(layout_.others, layers * (1 - share));
    return {own.leaving + others.leaving, own.staying + others.staying};
  }

  RecordSize record_of(model::KeepSet keep, double layers) const {
    const bool cached = layout_.slices > 1;
    const double unit = layers * tokens_;
    const double keys = cached ? as_double(key_value_bytes(shape_, element_)) : 0.0;
    const double statistics = as_double(statistics_bytes(shape_, keep, accumulator_));
    const double leaving = as_double(kept_bytes(shape_, keep, element_, cached)) - keys;
    return {(leaving - not_of_gelu(keep) + copies_on_tensor_ranks(keep)) * unit,
            (key_copies_ * keys + statistics) * unit};
  }

  // Copies of each key and value in the caches of the ranks that exchange heads: several if there are fewer
  // key heads than ranks. Trainers without slices pass keys on in rings and keep only their own.
  static double key_copies(const Workload& workload, const Layout& layout) {
    if (layout.slices == 1) return 1;
    const std::int64_t heads = model::shape_of_rank(workload.model.shape, layout.mesh.tensor).kv_heads;
    const model::ContextSplit split = average_slice(workload, layout).context;
    return as_double(split.kept_tokens() * split.kept_heads(heads)) / as_double(heads);
  }

  // All logits of a micro-batch, as some trainers hold them, and what they are computed from; else 0.
  double whole_logits(const DeviceLoad& load) const {
    if (!load.last) return 0;
    const bool cut = layout_.mesh.tensor > 1;
    const double logits = (cut ? habits_.cut_logit_bytes : habits_.logit_bytes) * as_double(vocab_);
    const bool gathered = cut && habits_.whole_output_input;
    return tokens_ * (logits + (gathered ? layout_.mesh.tensor * as_double(shape_.hidden * element_) : 0.0));
  }

  // Hidden-state gradients of one micro-batch on the last device, and the logits of a tile in the weight
  // type, which their gradient overwrites (two tiles under vocabulary parallelism, where one is gathered
  // while the next is computed).
  double tiled_logits(const DeviceLoad& load) const {
    const bool parallel = layout_.vocabulary_parallel;
    if (!load.last && !parallel) return 0.0;
    const double shards = layout_.mesh.tensor * (parallel ? layout_.mesh.pipeline : 1);
    const double rows = std::min((parallel ? 2 : 1) * as_double(loss_tile_), tokens_ * layout_.mesh.tensor);
    const double tiles = rows * as_double(vocab_ * element_) / shards;
    return tiles + (load.last ? hidden() * layout_.slices : 0.0);
  }

  double hidden() const {
    return hidden_copies() * as_double(shape_.hidden * element_) * tokens_;
  }  // bytes, per slice

  double weight_records(const DeviceLoad& load, double layers) const {
    const model::KeepSet all = keep_of(model::Policy::None);
    return load.weight_records * layers * tokens_ *
           (as_double(weight_record_bytes(shape_, all, element_, accumulator_)) - not_of_gelu(all));
  }

  double kv_gradients(const DeviceLoad& load, double layers) const {
    return load.kv_gradients * layers * tokens_ * key_copies_ *
           as_double(key_value_bytes(shape_, accumulator_));
  }

 private:
  // Bytes per token and layer that GELU does not keep: it has one input where SwiGLU has gate and up.
  double not_of_gelu(model::KeepSet keep) const {
    if (!gelu_ || !keep.has(model::SavedTensor::GateUp)) return 0;
    return as_double(shape_.experts_per_token * shape_.ffn * element_);
  }

  // Bytes per token and layer that the other tensor ranks hold a copy of. A split expert has whole inputs.
  double copies_on_tensor_ranks(model::KeepSet keep) const {
    model::KeepSet whole;
    if (layout_.cut_experts) whole = whole.with(model::SavedTensor::Dispatched);
    if (layout_.whole_hidden) whole = cut_by_tokens(shape_);
    return (layout_.mesh.tensor - 1) * as_double(kept_bytes(shape_, keep.common(whole), element_));
  }

  // Copies of a hidden state in a tensor group.
  double hidden_copies() const { return layout_.whole_hidden ? layout_.mesh.tensor : 1; }

  const Layout& layout_;
  const model::Shape shape_;
  const bool gelu_;
  const Bytes element_, accumulator_;
  const Tokens loss_tile_;
  const double tokens_;      // of one slice on one device, b·s/(n·t·c)
  const double key_copies_;  // copies of keys and values among context ranks
  const std::int64_t vocab_;
  const MemoryHabits habits_;
};

// Fully sharded data parallelism as in PyTorch: shards f32 weights, gradients and moments, experts over the
// ranks that hold the same ones. The weights of two units, or of all if they stay, are gathered in the
// training precision; a unit is a layer or an embedding matrix. A pipeline accumulates unsharded f32
// gradients until the last micro-batch.
void share_weights(const Workload& workload, const Layout& layout, const DeviceLoad& load,
                   const model::LocalParameters& parameters, double rotation, model::MemoryPeaks& memory) {
  const double element = as_double(element_size(workload.precision)),
               master = as_double(accumulator_size(workload.precision));
  const double shard = stepped_parameters(layout, parameters);
  const double layer = parameters_on_device(workload, layout, 1, 0).total();
  const double matrix = parameters_on_device(workload, layout, 0, std::min(load.embeddings, 1.0)).total();
  const double unit = std::max(layer, matrix), whole = parameters.total();
  const double gathered = layout.sharded.regathers ? std::min(whole, layer + unit) : whole;
  memory.weights = rounded(shard * master + gathered * element + rotation);
  memory.gradients = rounded((shard + (layout.mesh.pipeline > 1 ? whole : unit)) * master);
  memory.optimizer = rounded(2 * shard * master);
}

}  // namespace

model::LocalParameters parameters_on_device(const Workload& workload, const Layout& layout, double layers,
                                            double embeddings) {
  const model::Shape& shape = workload.model.shape;
  const double tensor = layout.mesh.tensor;
  model::LocalParameters held = model::held_parameters(shape, layout.mesh, layers, embeddings);
  if (has_gelu(workload)) {
    const double third = layers * as_double(shape.hidden * shape.ffn);
    if (shape.experts > 1) {
      held.expert -= third * as_double(shape.experts / layout.mesh.expert);
    } else {
      held.dense -= third / tensor;
    }
  }
  if (layout.cut_experts) {
    held.expert /= tensor;
    held.expert_replicas /= tensor;
  }
  return held;
}

double stepped_parameters(const Layout& layout, const model::LocalParameters& parameters) {
  if (layout.sharded.group == 1) return parameters.total();
  const double replicas = as_double(layout.mesh.replicas());
  const double group = layout.sharded.group > 0 ? as_double(layout.sharded.group) : replicas;
  const double expert_group = parameters.expert_replicas * (group / replicas);
  return parameters.dense / group + parameters.expert / std::max(1.0, expert_group);
}

RecordSize record_size(const Workload& workload, const Layout& layout, double layers_per_chunk) {
  return DeviceShare(workload, layout).record(layers_per_chunk);
}

Bytes temporary_bytes(const Workload& workload, const Layout& layout) {
  const bool sliced = layout.slices > 1;
  const model::LayerRange one{0, 1};
  const model::KernelSetting kernels = run::Machine{}.kernels(workload.precision, 1);
  model::Shape shape = workload.model.shape;
  if (has_gelu(workload)) shape.ffn = 2 * shape.ffn / 3;  // SwiGLU MLP of the same size
  const sim::RunBytes bytes(
      {.shape = shape,
       .mesh = layout.mesh,
       .layers = {one, one, one},
       .slices = {model::cut_into_slices(workload.seq_len, layout.slices)},
       .sequences = layout.micro_batch,
       .precision = workload.precision,
       .keep = {sliced ? layout.keep.with(model::SavedTensor::KeyValue) : layout.keep},
       .context = average_slice(workload, layout).context,
       .kernels = workload.gpu ? model::on_gpu(kernels, workload.habits.repeatable_attention) : kernels});
  const auto kind =
      splits_backward(layout.schedule) ? schedule::OpKind::BackwardInput : schedule::OpKind::Backward;
  return bytes.action(0, {.key = schedule::make_key(1, 0, layout.slices - 1), .kind = kind}).growth;
}

model::MemoryPeaks device_memory(const Workload& workload, const Layout& layout, const DeviceLoad& load) {
  const DeviceShare share(workload, layout);
  const model::Shape& shape = workload.model.shape;
  const double layers = load.layers / layout.chunks;
  const auto parameters = parameters_on_device(workload, layout, load.layers, load.embeddings);
  const RecordSize record = share.record(layers);
  const double gone = layout.offload * model::offloaded_records(load.records) * record.leaving;
  const double buffers = gone > 0 ? 2.0 * layout.offload * record.leaving : 0.0;

  model::MemoryPeaks memory;
  const double rotation =
      as_double(workload.seq_len * shape.head_dim() * accumulator_size(workload.precision));
  memory.weights = rounded(weight_bytes(parameters, workload.precision) + rotation);
  const double own_gradient = load.tied_gradients * as_double(shape.vocab * shape.hidden) /
                              layout.mesh.tensor * as_double(accumulator_size(workload.precision));
  memory.gradients = rounded(gradient_bytes(parameters, workload.precision) + own_gradient);
  const model::LocalParameters stepped{.dense = stepped_parameters(layout, parameters)};
  memory.optimizer = rounded(optimizer_bytes(stepped, mesh::Mesh{}, workload.precision));
  if (layout.sharded.on) share_weights(workload, layout, load, parameters, rotation, memory);
  memory.activations = rounded(load.records * record.total() - gone - buffers);
  memory.copies = rounded(buffers);
  memory.host = rounded(gone > 0 ? layout.offload * load.records * record.leaving : 0.0);
  memory.weight_records = rounded(share.weight_records(load, layers));
  memory.kv_gradients = rounded(share.kv_gradients(load, layers));
  if (workload.habits.logit_bytes > 0) {  // they are gone when layers go backward
    memory.logits = rounded(share.whole_logits(load));
    memory.transient = std::max<Bytes>(load.temporary - memory.logits, 0);
  } else {
    memory.logits = rounded(share.tiled_logits(load));
    memory.transient = load.temporary;
  }
  memory.transfers = rounded((load.queued + 2.0) * share.hidden());
  return memory;
}

}  // namespace penstock::plan
