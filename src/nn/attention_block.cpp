// SPDX-License-Identifier: Apache-2.0
#include "nn/attention_block.h"

#include <utility>
#include <vector>

#include "nn/earlier_part.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/attention.h"
#include "nn/kernels/cpu/element.h"
#include "nn/kernels/matmul.h"
#include "nn/kernels/merge.h"
#include "nn/kernels/profile.h"

namespace penstock::nn {
namespace {

using kernels::AttentionPart;
using kernels::Mask;
using model::SlicePart;

// [N, heads·d] as [b, heads, T, d], and back to rows of `type`.
at::Tensor by_head(const at::Tensor& rows, const SlicePlace& place, std::int64_t heads) {
  return rows.view({place.sequences, place.tokens, heads, rows.size(1) / heads}).transpose(1, 2);
}
at::Tensor by_token(const at::Tensor& x, at::ScalarType type) {
  return x.transpose(1, 2).to(type).contiguous().view({x.size(0) * x.size(2), x.size(1) * x.size(3)});
}

at::Tensor rotated(const AttentionBlock& block, const SlicePlace& place, const Parameter& weight,
                   std::int64_t heads, const at::Tensor& input) {
  const at::Tensor rows = kernels::product(input, weight.weight);
  return kernels::rope(rows.view({place.sequences, place.tokens, rows.size(1)}), *block.rotary, heads,
                       place.first_position);
}

// Earlier slices attended to on this device, newest first; the oldest halves may be computed elsewhere.
std::vector<std::pair<LayerRecord*, SlicePart>> parts_at_home(EarlierSlices earlier,
                                                              const AttentionPartners* partners) {
  const int count = static_cast<int>(earlier.size()), away = partners ? partners->halves() : 0;
  std::vector<std::pair<LayerRecord*, SlicePart>> parts;
  for (int slice = count - 1; slice >= 0; --slice) {
    LayerRecord* record = earlier[count - 1 - slice];
    const SlicePart part =
        model::part_in_halves(slice, (*record)[Saved::Key].size(2), away, 2 * count - away);
    if (part.length > 0) parts.emplace_back(record, part);
  }
  return parts;
}

AttentionPart attend_all(const LayerRecord& record, EarlierSlices earlier, AttentionPartners* partners) {
  const at::Tensor& query = record[Saved::Query];
  AttentionPart total = kernels::attend(query, record[Saved::Key], record[Saved::Value], Mask::Causal);
  if (earlier.empty()) return total;
  total.output = total.output.to(kernels::accumulator_type(total.output.scalar_type()));
  for (const auto& [slice, part] : parts_at_home(earlier, partners)) {
    const KeyValues chunk = keys_and_values(*slice, part);
    kernels::merge(total, kernels::attend(query, chunk.key, chunk.value, Mask::None));
  }
  if (partners) partners->merge(total);
  return total;
}

// The gradient of the rotated query [b, H, T, d]; those of keys and values go to the records.
at::Tensor attend_all_backward(const AttentionPart& merged, const at::Tensor& grad_output,
                               EarlierSlices earlier, LayerRecord& record, AttentionPartners* partners) {
  const at::Tensor& query = record[Saved::Query];
  const auto own_part = [&] {
    const auto own = kernels::attend_backward(grad_output, query, record[Saved::Key], record[Saved::Value],
                                              merged, Mask::Causal);
    kernels::accumulate_or_take(record.key_gradient, own.key);
    kernels::accumulate_or_take(record.value_gradient, own.value);
    return own.query;
  };
  at::Tensor grad_query = own_part();
  if (earlier.empty()) return grad_query;
  grad_query = grad_query.to(kernels::accumulator_type(grad_query.scalar_type()));
  const auto earlier_part = [&](LayerRecord& slice, const SlicePart& part) {
    const KeyValues chunk = keys_and_values(slice, part);
    const auto gradients =
        kernels::attend_backward(grad_output, query, chunk.key, chunk.value, merged, Mask::None);
    add_gradients(slice, part, {gradients.key, gradients.value});
    return gradients.query;
  };
  for (const auto& [slice, part] : parts_at_home(earlier, partners))
    kernels::accumulate(grad_query, earlier_part(*slice, part));
  if (partners) partners->add_gradients(grad_query, earlier);
  return grad_query;
}

}  // namespace

void attend(const AttentionBlock& block, const SlicePlace& place, EarlierSlices earlier, LayerRecord& record,
            AttentionPartners* partners) {
  const BlockScope scope(Block::Attention);
  const at::Tensor& input = record[Saved::Norm1Output];
  if (!record[Saved::Query].defined()) {
    record[Saved::Query] = rotated(block, place, *block.query, block.heads, input);
  }
  const bool attends = !record[Saved::AttentionOutput].defined();
  if (partners && attends) partners->post_queries(record[Saved::Query]);
  if (!record[Saved::Key].defined()) {
    record[Saved::Key] = rotated(block, place, *block.key, block.kv_heads, input);
    record[Saved::Value] = by_head(kernels::product(input, block.value->weight), place, block.kv_heads);
  }
  if (!attends) return;
  const AttentionPart merged = attend_all(record, earlier, partners);
  record[Saved::AttentionOutput] = by_token(merged.output, input.scalar_type());
  record[Saved::LogSumExp] = merged.log_sum_exp;
}

at::Tensor attention_output(const AttentionBlock& block, const LayerRecord& record) {
  const BlockScope scope(Block::Attention);
  return kernels::product(record[Saved::AttentionOutput], block.output->weight);
}

at::Tensor attention_backward_input(const AttentionBlock& block, const SlicePlace& place,
                                    const at::Tensor& grad_output, EarlierSlices earlier, LayerRecord& record,
                                    WeightRecord& pending, AttentionPartners* partners) {
  const BlockScope scope(Block::Attention);
  const at::ScalarType type = grad_output.scalar_type();
  const at::Tensor grad_rows = kernels::product_backward(grad_output, block.output->weight);
  AttentionPart merged{by_head(record[Saved::AttentionOutput], place, block.heads), record[Saved::LogSumExp]};
  at::Tensor grad_attention = by_head(grad_rows, place, block.heads);
  if (block.heads != block.kv_heads && !earlier.empty()) {
    // Every earlier chunk folds the groups of these two: one copy here instead of one per chunk.
    merged.output = merged.output.contiguous();
    grad_attention = grad_attention.contiguous();
  }
  if (partners) partners->post_gradients(record[Saved::Query], merged, grad_attention);
  const at::Tensor rotated_query = attend_all_backward(merged, grad_attention, earlier, record, partners);
  const at::Tensor grad_query =
      kernels::rope_backward(rotated_query, *block.rotary, place.first_position, type);
  const at::Tensor grad_key =
      kernels::rope_backward(record.key_gradient, *block.rotary, place.first_position, type);
  const at::Tensor grad_value = by_token(record.value_gradient, type);

  at::Tensor grad_input = kernels::product_backward(grad_query, block.query->weight);
  kernels::add_product_backward(grad_input, grad_key, block.key->weight);
  kernels::add_product_backward(grad_input, grad_value, block.value->weight);
  const at::Tensor& input = record[Saved::Norm1Output];
  pending.push_back({block.output, grad_output, record[Saved::AttentionOutput]});
  pending.push_back({block.query, grad_query, input});
  pending.push_back({block.key, grad_key, input});
  pending.push_back({block.value, grad_value, input});
  return grad_input;
}

}  // namespace penstock::nn
