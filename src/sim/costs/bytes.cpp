// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/bytes.h"

#include "base/whole.h"

#include <algorithm>
#include <utility>

namespace penstock::sim {
namespace {

using schedule::Op;
using schedule::OpKind;

model::ActionKind memory_kind(OpKind kind) {
  switch (kind) {
    case OpKind::Forward:
      return model::ActionKind::Forward;
    case OpKind::BackwardInput:
      return model::ActionKind::BackwardInput;
    case OpKind::BackwardWeight:
      return model::ActionKind::BackwardWeight;
    default:
      return model::ActionKind::Backward;
  }
}

}  // namespace

model::KeepSet Work::kept_of(std::int64_t layer) const {
  return keep.empty() ? keep_of(model::Policy::None) : keep[layer];
}

RunBytes::RunBytes(Work work) : work_(std::move(work)) {
  const auto alike = [&](std::size_t j, std::size_t k) {
    return work_.slices[j] == work_.slices[k] &&
           (work_.documents.empty() || work_.documents[j] == work_.documents[k]);
  };
  for (std::size_t j = 0; j < work_.slices.size(); ++j) {
    std::size_t first = 0;
    while (!alike(j, first)) ++first;
    cut_of_.push_back(static_cast<int>(first));
  }
}

model::TensorSplit RunBytes::split() const {
  const std::int64_t ranks = work_.mesh.tensor;
  return {.shards = work_.tensor_shards > 0 ? work_.tensor_shards : ranks, .ranks = ranks};
}

model::ContextSplit RunBytes::context() const {
  model::ContextSplit context = work_.context;
  context.ranks = work_.mesh.context;
  return context;
}

Tokens RunBytes::rows(int micro_batch, int slice) const {
  return work_.sequences * ceil_div(work_.slices[micro_batch][slice].length, work_.mesh.context);
}

model::LayerShards RunBytes::layer(int micro_batch, int slice) const {
  return {work_.shape, split(), rows(micro_batch, slice), context()};
}

RecordBytes RunBytes::record(const schedule::Key& key) const {
  const auto [stage, micro_batch, slice] = key;
  const Bytes element = element_size(work_.precision), accumulator = accumulator_size(work_.precision);
  const int slices = static_cast<int>(work_.slices[micro_batch].size());
  const model::LayerShards shards = layer(micro_batch, slice);
  const auto [first, layers] = work_.layers[stage];
  RecordBytes bytes;
  for (std::int64_t layer = first; layer < first + layers; ++layer) {
    const model::KeepSet keep = work_.kept_of(layer);
    bytes.record += shards.kept(keep, element) + shards.statistics(keep, accumulator);
  }
  if (work_.is_last(stage)) bytes.logits = hidden_bytes(micro_batch, slice);
  const model::LayerShards own(work_.shape, split(), rows(micro_batch, slice));  // gradients of own tokens
  bytes.weight_record = layers * own.weight_record(element, accumulator);
  bytes.handed_over = hidden_bytes(micro_batch, slice);
  // No later slice adds to the K,V gradients of the last one, so it has no accumulator.
  if (slice + 1 < slices)
    bytes.kv_gradient =
        layers * shards.kept(model::KeepSet{}.with(model::SavedTensor::KeyValue), accumulator);
  return bytes;
}

Bytes RunBytes::leavable(const schedule::Key& key) const {
  const auto [stage, micro_batch, slice] = key;
  const bool sliced = work_.slices[micro_batch].size() > 1;
  const model::LayerShards shards = layer(micro_batch, slice);
  const auto [first, count] = work_.layers[stage];
  Bytes bytes = 0;
  for (std::int64_t layer = first; layer < first + count; ++layer) {
    const model::KeepSet keep = work_.kept_of(layer);
    bytes += shards.kept(sliced ? keep.without(model::SavedTensor::KeyValue) : keep,
                         element_size(work_.precision));
  }
  return bytes;
}

Bytes RunBytes::hidden_bytes(int micro_batch, int slice) const {
  return layer(micro_batch, slice).own_rows() * work_.shape.hidden * element_size(work_.precision);
}

model::ActionSize RunBytes::action_size(const schedule::Key& key) const {
  const auto [stage, micro_batch, slice] = key;
  const auto& cut = work_.slices[micro_batch];
  const auto [first, count] = work_.layers[stage];
  const auto together = [&, stage = stage](int other) {
    return other >= 0 && other < work_.stages() && !work_.devices.empty() &&
           work_.devices[stage] == work_.devices[other];
  };
  const std::int64_t c = work_.mesh.context;
  model::ActionSize size{.shape = work_.shape,
                         .tensor = split(),
                         .context = context(),
                         .expert_ranks = work_.mesh.expert,
                         .sequences = work_.sequences,
                         .tokens = ceil_div(cut[slice].length, c),
                         .last_slice = slice + 1 == static_cast<int>(cut.size()),
                         .first_stage = stage == 0,
                         .last_stage = work_.is_last(stage),
                         .sharded_vocabulary = work_.vocabulary_parallel,
                         .handed_over = together(stage - 1),
                         .gradient_handed_over = together(stage + 1),
                         .loss_tile = work_.loss_tile};
  for (std::int64_t layer = first; layer < first + count; ++layer) size.keep.push_back(work_.kept_of(layer));
  // On a CPU, equal slices take turns with the same memory: one stands for those beside it. But the backward
  // of the last slice leaves gradients of each.
  const bool each = size.last_slice || work_.kernels->gpu;
  for (int earlier = slice - 1; earlier >= 0; --earlier) {
    const Tokens length = ceil_div(cut[earlier].length, c);
    if (each || size.earlier.empty() || size.earlier.back() != length) size.earlier.push_back(length);
  }
  return size;
}

ActionBytes RunBytes::visit(int device, const Op& op) const {
  const auto& cut = work_.slices[op.key.micro_batch];
  const model::VisitSize size{.shape = work_.shape,
                              .tensor = split(),
                              .stages = work_.mesh.pipeline,
                              .last = work_.devices.empty() || work_.devices.back() == device,
                              .sequences = work_.sequences,
                              .tokens = ceil_div(cut[op.key.slice].length, work_.mesh.context),
                              .sliced = cut.size() > 1,
                              .loss_tile = work_.loss_tile};
  const model::VisitMemory memory = visit_memory(size, *work_.kernels);
  return {memory.temporary, memory.growth, memory.logits, memory.messages};
}

ActionBytes RunBytes::action(int device, const Op& op) const {
  if (!work_.kernels) return {};
  if (op.kind == OpKind::VocabularyLoss) return visit(device, op);
  const auto [place, fresh] =
      actions_.try_emplace({op.kind, op.key.stage, cut_of_[op.key.micro_batch], op.key.slice}, ActionBytes{});
  if (!fresh) return place->second;
  const model::ActionMemory memory =
      model::action_memory(action_size(op.key), *work_.kernels, memory_kind(op.kind));
  return place->second = {memory.temporary, memory.growth, memory.logits, memory.messages};
}

StageBytes RunBytes::stage(int number) const {
  const auto index = static_cast<std::size_t>(number);
  return index < work_.sharded_weights.size() ? work_.sharded_weights[index] : StageBytes{};
}

}  // namespace penstock::sim
