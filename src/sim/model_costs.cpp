// SPDX-License-Identifier: Apache-2.0
#include "sim/model_costs.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

namespace penstock::sim {
namespace {

using schedule::Op;
using schedule::OpKind;

constexpr double kAttentionBackward = 2.5;  // forwards

void require_positive(const char* name, double value) {
  if (std::isfinite(value) && value > 0) return;
  throw InputError(std::string(name) + " = " + std::to_string(value) + "; expected a finite number above 0");
}

// Parameters of a layer's matrices that a token meets.
double matrix_parameters(const model::Shape& shape) {
  return static_cast<double>(attention_parameters(shape) + router_parameters(shape) +
                             expert_parameters(shape) * shape.experts_per_token);
}

// Pairs (query, key) of one sequence's slice: every earlier token, and its own causal triangle.
double attention_pairs(const model::TokenRange& slice) {
  const auto length = static_cast<double>(slice.length);
  return length * static_cast<double>(slice.begin) + length * (length + 1) / 2;
}

}  // namespace

ModelCosts::ModelCosts(const ModelCostsOptions& options) : options_(options) {
  require_positive("flops_per_second", options.flops_per_second);
  require_positive("attention_flops_per_second", options.attention_flops_per_second);
  require_positive("copy_bytes_per_second", options.copy_bytes_per_second);
  if (options.link.bytes_per_second != std::numeric_limits<double>::infinity()) {
    require_positive("link bytes_per_second", options.link.bytes_per_second);
  }
  checked_seconds("link latency", options.link.latency);
  checked_seconds("attention_factor", options.attention_factor);
  for (const auto& cut : options.slices) {
    cut_of_.push_back(static_cast<int>(std::ranges::find(options.slices, cut) - options.slices.begin()));
  }
}

double ModelCosts::tokens(int micro_batch, int slice) const {
  return static_cast<double>(options_.slices[micro_batch][slice].length * options_.sequences);
}

ModelCosts::Work ModelCosts::work(int stage, int micro_batch, int slice) const {
  const model::Shape& shape = options_.shape;
  const auto layers = static_cast<double>(options_.layers[stage].count);
  const double pairs =
      attention_pairs(options_.slices[micro_batch][slice]) * static_cast<double>(options_.sequences);
  const double products = 2 * layers * matrix_parameters(shape) * tokens(micro_batch, slice);
  const double attention = 4 * layers * static_cast<double>(shape.query_width()) * pairs;
  return {products / options_.flops_per_second,
          attention * options_.attention_factor / options_.attention_flops_per_second};
}

Seconds ModelCosts::output_products(int micro_batch, int slice) const {
  const double flops =
      6.0 * static_cast<double>(options_.shape.vocab * options_.shape.hidden) * tokens(micro_batch, slice);
  return flops / options_.flops_per_second / std::max(options_.vocabulary_shards, 1);
}

Seconds ModelCosts::seconds(int, std::uint32_t, const Op& op) const {
  if (op.kind == OpKind::Offload || op.kind == OpKind::Reload) {
    return static_cast<double>(op.bytes) / options_.copy_bytes_per_second;
  }
  if (op.kind == OpKind::VocabularyLoss) {
    return output_products(op.micro_batch, op.slice) + options_.link.latency +
           static_cast<double>(op.bytes) / options_.link.bytes_per_second;
  }
  if (!is_action(op.kind)) return 0;
  const Work forward = work(op.stage, op.micro_batch, op.slice);
  const bool last = op.stage + 1 == static_cast<int>(options_.layers.size());
  const bool here = last && options_.vocabulary_shards == 0;
  const Seconds output = here ? output_products(op.micro_batch, op.slice) : 0;
  switch (op.kind) {
    case OpKind::Forward:
      return forward.products + forward.attention + output;
    case OpKind::BackwardWeight:
      return forward.products;
    default: {
      const Work again = recomputed(op.stage, op.micro_batch, op.slice);
      const double products = op.kind == OpKind::BackwardInput ? 1 : 2;
      return products * forward.products + kAttentionBackward * forward.attention + again.products +
             again.attention;
    }
  }
}

AttentionShare ModelCosts::attention(int, std::uint32_t, const Op& op) const {
  if (!is_action(op.kind)) return {};
  AttentionShare share{.layers = static_cast<int>(options_.layers[op.stage].count)};
  if (op.kind == OpKind::BackwardWeight) return share;
  share.seconds = work(op.stage, op.micro_batch, op.slice).attention;
  if (is_backward(op.kind))
    share.seconds =
        kAttentionBackward * share.seconds + recomputed(op.stage, op.micro_batch, op.slice).attention;
  return share;
}

// Products and attention that form what the stage's layers did not keep.
ModelCosts::Work ModelCosts::recomputed(int stage, int micro_batch, int slice) const {
  using Tensor = model::SavedTensor;
  const model::Shape& shape = options_.shape;
  const auto [first, count] = options_.layers[stage];
  double parameters = 0, attentions = 0;
  for (std::int64_t layer = first; layer < first + count; ++layer) {
    const model::KeepSet keep = kept_of(layer);
    if (!keep.has(Tensor::Query)) parameters += static_cast<double>(shape.hidden * shape.query_width());
    if (!keep.has(Tensor::KeyValue)) parameters += 2.0 * static_cast<double>(shape.hidden * shape.kv_width());
    if (!keep.has(Tensor::NormTwoInput))
      parameters += static_cast<double>(shape.hidden * shape.query_width());
    if (!keep.has(Tensor::GateUp)) {
      parameters += 2.0 / 3.0 * static_cast<double>(expert_parameters(shape) * shape.experts_per_token);
    }
    if (!keep.has(Tensor::AttentionOutput)) attentions += 1;
  }
  return {2 * parameters * tokens(micro_batch, slice) / options_.flops_per_second,
          work(stage, micro_batch, slice).attention * attentions / static_cast<double>(count)};
}

Transfer ModelCosts::transfer(int, std::uint32_t, const Op& send) const {
  return {static_cast<double>(send.bytes) / options_.link.bytes_per_second, options_.link.latency};
}

model::KeepSet ModelCosts::kept_of(std::int64_t layer) const {
  return options_.keep.empty() ? keep_of(model::Policy::None)
                               : options_.keep[static_cast<std::size_t>(layer)];
}

Bytes ModelCosts::saved_per_token(int stage) const {
  const auto [first, count] = options_.layers[stage];
  Bytes bytes = 0;
  for (std::int64_t layer = first; layer < first + count; ++layer) {
    const model::KeepSet keep = kept_of(layer);
    bytes += kept_bytes(options_.shape, keep, element_size(options_.precision)) +
             statistics_bytes(options_.shape, keep, accumulator_size(options_.precision));
  }
  return bytes;
}

RecordBytes ModelCosts::record(int stage, int micro_batch, int slice) const {
  const model::Shape& shape = options_.shape;
  const Bytes element = element_size(options_.precision);
  const Bytes accumulator = accumulator_size(options_.precision);
  const int slices = static_cast<int>(options_.slices[micro_batch].size());
  const auto count = static_cast<Bytes>(tokens(micro_batch, slice));
  const Bytes token_layers = count * options_.layers[stage].count;
  const Bytes everything = kept_bytes(shape, keep_of(model::Policy::None), element);
  RecordBytes bytes;
  bytes.record = count * saved_per_token(stage);
  if (stage + 1 == static_cast<int>(options_.layers.size())) bytes.logits = hidden_bytes(micro_batch, slice);
  bytes.weight_record = token_layers * everything;
  bytes.handed_over = hidden_bytes(micro_batch, slice);
  // No later slice adds to the last one's keys and values, so it has no accumulator.
  if (slice + 1 < slices) bytes.kv_gradient = token_layers * 2 * shape.kv_width() * accumulator;
  return bytes;
}

Bytes ModelCosts::leavable(int stage, int micro_batch, int slice) const {
  const Bytes element = element_size(options_.precision);
  const bool sliced = options_.slices[micro_batch].size() > 1;
  const auto [first, count] = options_.layers[stage];
  Bytes per_token = 0;
  for (std::int64_t layer = first; layer < first + count; ++layer) {
    const model::KeepSet keep = kept_of(layer);
    per_token +=
        kept_bytes(options_.shape, sliced ? keep.without(model::SavedTensor::KeyValue) : keep, element);
  }
  return static_cast<Bytes>(tokens(micro_batch, slice)) * per_token;
}

model::ActionSize ModelCosts::action_size(int stage, int micro_batch, int slice) const {
  const auto& cut = options_.slices[micro_batch];
  const auto [first, count] = options_.layers[stage];
  const int stages = static_cast<int>(options_.layers.size());
  const auto together = [&](int other) {
    return other >= 0 && other < stages && !options_.devices.empty() &&
           options_.devices[stage] == options_.devices[other];
  };
  model::ActionSize size{.shape = options_.shape,
                         .sequences = options_.sequences,
                         .tokens = cut[slice].length,
                         .last_slice = slice + 1 == static_cast<int>(cut.size()),
                         .first_stage = stage == 0,
                         .last_stage = stage + 1 == stages,
                         .handed_over = together(stage - 1),
                         .gradient_handed_over = together(stage + 1),
                         .loss_tile = options_.loss_tile};
  for (std::int64_t layer = first; layer < first + count; ++layer) size.keep.push_back(kept_of(layer));
  for (int earlier = slice - 1; earlier >= 0; --earlier) size.earlier.push_back(cut[earlier].length);
  return size;
}

ActionBytes ModelCosts::visit(int device, const Op& op) const {
  const int last = static_cast<int>(options_.layers.size()) - 1;
  const auto& cut = options_.slices[op.micro_batch];
  const model::VisitSize size{.shape = options_.shape,
                              .devices = options_.vocabulary_shards,
                              .last = options_.devices.empty() || options_.devices[last] == device,
                              .sequences = options_.sequences,
                              .tokens = cut[op.slice].length,
                              .sliced = cut.size() > 1,
                              .loss_tile = options_.loss_tile};
  const model::VisitMemory memory = visit_memory(size, *options_.kernels);
  return {memory.temporary, memory.growth, memory.logits, memory.messages};
}

ActionBytes ModelCosts::action(int device, const Op& op) const {
  if (!options_.kernels) return {};
  if (op.kind == OpKind::VocabularyLoss) return visit(device, op);
  const auto [place, fresh] =
      actions_.try_emplace({op.kind, op.stage, cut_of_[op.micro_batch], op.slice}, ActionBytes{});
  if (!fresh) return place->second;
  model::ActionSize size = action_size(op.stage, op.micro_batch, op.slice);
  // The loss is formed by a visit, which leaves its gradient.
  if (op.kind == OpKind::Forward && options_.vocabulary_shards > 0) size.last_stage = false;
  const auto kind = op.kind == OpKind::Forward          ? model::ActionKind::Forward
                    : op.kind == OpKind::BackwardInput  ? model::ActionKind::BackwardInput
                    : op.kind == OpKind::BackwardWeight ? model::ActionKind::BackwardWeight
                                                        : model::ActionKind::Backward;
  const model::ActionMemory memory = model::action_memory(size, *options_.kernels, kind);
  const Bytes logits =
      kind == model::ActionKind::Forward ? logits_tile_bytes(size, *options_.kernels) : Bytes{0};
  return place->second = {memory.temporary, memory.growth, logits};
}

Bytes ModelCosts::hidden_bytes(int micro_batch, int slice) const {
  return static_cast<Bytes>(tokens(micro_batch, slice)) * options_.shape.hidden *
         element_size(options_.precision);
}

}  // namespace penstock::sim
