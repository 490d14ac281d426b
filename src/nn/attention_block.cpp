// SPDX-License-Identifier: Apache-2.0
#include "nn/attention_block.h"

#include "nn/allocator.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/attention.h"
#include "nn/kernels/element.h"
#include "nn/kernels/matmul.h"
#include "nn/kernels/merge.h"
#include "nn/profile.h"

namespace penstock::nn {
namespace {

using kernels::AttentionPart;
using kernels::Mask;

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

AttentionPart attend_all(const LayerRecord& record, EarlierSlices earlier) {
  AttentionPart total =
      kernels::attend(record[Saved::Query], record[Saved::Key], record[Saved::Value], Mask::Causal);
  if (earlier.empty()) return total;
  total.output = total.output.to(kernels::accumulator_type(total.output.scalar_type()));
  for (const LayerRecord* slice : earlier) {
    kernels::merge(total, kernels::attend(record[Saved::Query], (*slice)[Saved::Key], (*slice)[Saved::Value],
                                          Mask::None));
  }
  return total;
}

// The gradient of the rotated query [b, H, T, d]; those of keys and values go to their slices' records.
at::Tensor attend_all_backward(const AttentionPart& merged, const at::Tensor& grad_output,
                               EarlierSlices earlier, LayerRecord& record) {
  const auto add = [&](LayerRecord& slice, Mask mask) {
    const auto part = kernels::attend_backward(grad_output, record[Saved::Query], slice[Saved::Key],
                                               slice[Saved::Value], merged, mask);
    kernels::accumulate_or_take(slice.key_gradient, part.key);
    kernels::accumulate_or_take(slice.value_gradient, part.value);
    return part.query;
  };
  at::Tensor grad_query = add(record, Mask::Causal);
  if (earlier.empty()) return grad_query;
  grad_query = grad_query.to(kernels::accumulator_type(grad_query.scalar_type()));
  for (LayerRecord* slice : earlier) {
    kernels::accumulate(grad_query, add(*slice, Mask::None));
    recount(slice->key_gradient, Category::KvGradients);
    recount(slice->value_gradient, Category::KvGradients);
  }
  return grad_query;
}

}  // namespace

void attend(const AttentionBlock& block, const SlicePlace& place, EarlierSlices earlier,
            LayerRecord& record) {
  const BlockScope scope(Block::Attention);
  const at::Tensor& input = record[Saved::Norm1Output];
  if (!record[Saved::Query].defined()) {
    record[Saved::Query] = rotated(block, place, *block.query, block.heads, input);
  }
  if (!record[Saved::Key].defined()) {
    record[Saved::Key] = rotated(block, place, *block.key, block.kv_heads, input);
    record[Saved::Value] = by_head(kernels::product(input, block.value->weight), place, block.kv_heads);
  }
  if (record[Saved::AttentionOutput].defined()) return;
  const AttentionPart merged = attend_all(record, earlier);
  record[Saved::AttentionOutput] = by_token(merged.output, input.scalar_type());
  record[Saved::LogSumExp] = merged.log_sum_exp;
}

at::Tensor attention_output(const AttentionBlock& block, const LayerRecord& record) {
  const BlockScope scope(Block::Attention);
  return kernels::product(record[Saved::AttentionOutput], block.output->weight);
}

at::Tensor attention_backward_input(const AttentionBlock& block, const SlicePlace& place,
                                    const at::Tensor& grad_output, EarlierSlices earlier, LayerRecord& record,
                                    WeightRecord& pending) {
  const BlockScope scope(Block::Attention);
  const at::ScalarType type = grad_output.scalar_type();
  const at::Tensor grad_rows = kernels::product_backward(grad_output, block.output->weight);
  AttentionPart merged{by_head(record[Saved::AttentionOutput], place, block.heads), record[Saved::LogSumExp]};
  at::Tensor grad_attention = by_head(grad_rows, place, block.heads);
  if (block.heads != block.kv_heads && !earlier.empty()) {
    // Every earlier chunk folds the groups of these two: one copy here instead of one for each chunk.
    merged.output = merged.output.contiguous();
    grad_attention = grad_attention.contiguous();
  }
  const at::Tensor rotated_query = attend_all_backward(merged, grad_attention, earlier, record);
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
