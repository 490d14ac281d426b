// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/bytes.h"

#include <algorithm>
#include <utility>

namespace penstock::sim {
namespace {

using schedule::Op;
using schedule::OpKind;

std::int64_t ceiling(std::int64_t whole, std::int64_t parts) { return (whole + parts - 1) / parts; }

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
  for (const auto& cut : work_.slices) {
    cut_of_.push_back(static_cast<int>(std::ranges::find(work_.slices, cut) - work_.slices.begin()));
  }
}

Bytes RunBytes::tokens(int micro_batch, int slice) const {
  return work_.slices[micro_batch][slice].length * work_.sequences;
}

Bytes RunBytes::share(Bytes whole) const {
  return ceiling(whole, std::int64_t{work_.mesh.tensor} * work_.mesh.context);
}

RecordBytes RunBytes::record(const schedule::Key& key) const {
  const auto [stage, micro_batch, slice] = key;
  const model::Shape& shape = work_.shape;
  const Bytes element = element_size(work_.precision), accumulator = accumulator_size(work_.precision);
  const int slices = static_cast<int>(work_.slices[micro_batch].size());
  const Bytes count = tokens(micro_batch, slice);
  const auto [first, layers] = work_.layers[stage];
  Bytes saved = 0;
  for (std::int64_t layer = first; layer < first + layers; ++layer) {
    const model::KeepSet keep = work_.kept_of(layer);
    saved += kept_bytes(shape, keep, element) + statistics_bytes(shape, keep, accumulator);
  }
  RecordBytes bytes;
  bytes.record = share(count * saved);
  if (work_.is_last(stage)) bytes.logits = hidden_bytes(micro_batch, slice);
  bytes.weight_record = share(count * layers * kept_bytes(shape, keep_of(model::Policy::None), element));
  bytes.handed_over = hidden_bytes(micro_batch, slice);
  // No later slice adds to the last one's keys and values, so it has no accumulator.
  if (slice + 1 < slices) bytes.kv_gradient = share(count * layers * 2 * shape.kv_width() * accumulator);
  return bytes;
}

Bytes RunBytes::leavable(const schedule::Key& key) const {
  const auto [stage, micro_batch, slice] = key;
  const Bytes element = element_size(work_.precision);
  const bool sliced = work_.slices[micro_batch].size() > 1;
  const auto [first, count] = work_.layers[stage];
  Bytes per_token = 0;
  for (std::int64_t layer = first; layer < first + count; ++layer) {
    const model::KeepSet keep = work_.kept_of(layer);
    per_token += kept_bytes(work_.shape, sliced ? keep.without(model::SavedTensor::KeyValue) : keep, element);
  }
  return share(tokens(micro_batch, slice) * per_token);
}

Bytes RunBytes::hidden_bytes(int micro_batch, int slice) const {
  return share(tokens(micro_batch, slice) * work_.shape.hidden * element_size(work_.precision));
}

model::Shape RunBytes::shape_of_rank() const {
  model::Shape shape = model::shape_of_rank(work_.shape, work_.mesh.tensor);
  shape.ffn = ceiling(work_.shape.ffn * work_.shape.experts_per_token, work_.mesh.tensor);
  if (!work_.vocabulary_parallel) shape.vocab = ceiling(shape.vocab, work_.mesh.tensor);
  return shape;
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
  model::ActionSize size{.shape = shape_of_rank(),
                         .sequences = work_.sequences,
                         .tokens = ceiling(cut[slice].length, c),
                         .last_slice = slice + 1 == static_cast<int>(cut.size()),
                         .first_stage = stage == 0,
                         .last_stage = work_.is_last(stage),
                         .handed_over = together(stage - 1),
                         .gradient_handed_over = together(stage + 1),
                         .loss_tile = work_.loss_tile};
  for (std::int64_t layer = first; layer < first + count; ++layer) size.keep.push_back(work_.kept_of(layer));
  for (int earlier = slice - 1; earlier >= 0; --earlier)
    size.earlier.push_back(ceiling(cut[earlier].length, c));
  return size;
}

ActionBytes RunBytes::visit(int device, const Op& op) const {
  const auto& cut = work_.slices[op.key.micro_batch];
  const model::VisitSize size{.shape = shape_of_rank(),
                              .devices = mesh::size(work_.mesh, mesh::Group::Vocabulary),
                              .last = work_.devices.empty() || work_.devices.back() == device,
                              .sequences = work_.sequences,
                              .tokens = ceiling(cut[op.key.slice].length, work_.mesh.context),
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
  model::ActionSize size = action_size(op.key);
  const model::ActionKind kind = memory_kind(op.kind);
  const bool forward = kind == model::ActionKind::Forward;
  // The loss is formed by a visit, which leaves its gradient.
  if (forward && work_.vocabulary_parallel) size.last_stage = false;
  const model::ActionMemory memory = model::action_memory(size, *work_.kernels, kind);
  const Bytes logits = forward ? logits_tile_bytes(size, work_.precision) : Bytes{0};
  return place->second = {memory.temporary, memory.growth, logits};
}

StageBytes RunBytes::stage(int number) const {
  const auto index = static_cast<std::size_t>(number);
  return index < work_.passing.size() ? work_.passing[index] : StageBytes{};
}

}  // namespace penstock::sim
