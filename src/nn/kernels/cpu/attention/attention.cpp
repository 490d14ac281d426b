// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/attention.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>

#include "nn/kernels/accumulate.h"
#include "nn/kernels/attention_work.h"
#include "nn/kernels/by_document.h"
#include "nn/kernels/cpu/attention/tiled.h"
#include "nn/kernels/cpu/tiled_products.h"
#include "nn/kernels/matmul.h"

namespace penstock::nn::kernels {
namespace {

// For as many query heads as key-value heads.
AttentionPart attend_ungrouped(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                               Mask mask) {
  auto [output, log_sum_exp] =
      at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, mask == Mask::Causal);
  return {output, log_sum_exp.contiguous()};
}

AttentionGradients backward_ungrouped(const at::Tensor& grad_output, const at::Tensor& query,
                                      const at::Tensor& key, const at::Tensor& value,
                                      const AttentionPart& merged, Mask mask) {
  auto [grad_query, grad_key, grad_value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      grad_output, query, key, value, merged.output, merged.log_sum_exp, 0.0, mask == Mask::Causal);
  return {grad_query, grad_key, grad_value};
}

// [b, H, T, ...] → view [b, K, H/K, T, ...].
at::Tensor grouped(const at::Tensor& x, std::int64_t kv_heads) {
  return x.unflatten(1, at::IntArrayRef{kv_heads, x.size(1) / kv_heads});
}

// Without a mask the queries of a group are treated as more tokens: [b, H, T, ...] → [b, K, H/K·T, ...].
at::Tensor folded(const at::Tensor& x, std::int64_t kv_heads) { return grouped(x, kv_heads).flatten(2, 3); }

at::Tensor unfolded(const at::Tensor& x, at::IntArrayRef sizes) { return x.contiguous().view(sizes); }

// With the causal mask: one call per member of the groups.
AttentionPart attend_by_member(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const std::int64_t b = query.size(0), heads = query.size(1), tokens = query.size(2), d = query.size(3);
  const at::Tensor members = grouped(query, key.size(1));
  at::Tensor output = at::empty({b, tokens, heads, d}, query.options());
  at::Tensor log_sum_exp;
  for (std::int64_t member = 0; member < members.size(2); ++member) {
    const AttentionPart part = attend_ungrouped(members.select(2, member), key, value, Mask::Causal);
    if (!log_sum_exp.defined()) log_sum_exp = at::empty({b, heads, tokens}, part.log_sum_exp.options());
    grouped(output.transpose(1, 2), key.size(1)).select(2, member).copy_(part.output);
    grouped(log_sum_exp, key.size(1)).select(2, member).copy_(part.log_sum_exp);
  }
  return {output.transpose(1, 2), log_sum_exp};
}

AttentionGradients backward_by_member(const at::Tensor& grad_output, const at::Tensor& query,
                                      const at::Tensor& key, const at::Tensor& value,
                                      const AttentionPart& merged) {
  const std::int64_t kv_heads = key.size(1);
  const auto member_of = [&](const at::Tensor& x, std::int64_t member) {
    return grouped(x, kv_heads).select(2, member);
  };
  AttentionGradients total{at::empty(query.sizes(), query.options()), {}, {}};
  for (std::int64_t member = 0; member < query.size(1) / kv_heads; ++member) {
    const AttentionPart part{member_of(merged.output, member), member_of(merged.log_sum_exp, member)};
    const AttentionGradients gradients = backward_ungrouped(
        member_of(grad_output, member), member_of(query, member), key, value, part, Mask::Causal);
    member_of(total.query, member).copy_(gradients.query);
    accumulate_or_take(total.key, gradients.key);
    accumulate_or_take(total.value, gradients.value);
  }
  return total;
}

}  // namespace

AttentionKernel fastest_attention(at::ScalarType type) {
  const bool widens = type == at::kBFloat16 && fastest_bf16_products() == Bf16Products::Widened;
  return has_tile_products(widens ? at::kFloat : type) ? AttentionKernel::Tiled : AttentionKernel::Aten;
}

// CPU kernels loop over tiles of keys in any case, and joining chunks would need a copy.
std::int64_t keys_at_once(at::ScalarType /*type*/, std::int64_t /*queries*/) { return 0; }

AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible, AttentionKernel kernel) {
  const bool by_document = kernel == AttentionKernel::Aten && visible.starts.defined();
  if (by_document) return attend_by_document(query, key, value, visible, kernel);
  const KernelTimer timer(Kernel::Attention, attention_work(query, key, visible, 2));
  if (kernel == AttentionKernel::Tiled) return attend_tiled(query, key, value, visible);
  const Mask mask = visible.mask;
  const std::int64_t kv_heads = key.size(1);
  if (query.size(1) == kv_heads) return attend_ungrouped(query, key, value, mask);
  if (mask == Mask::Causal) return attend_by_member(query, key, value);
  const AttentionPart part = attend_ungrouped(folded(query, kv_heads), key, value, mask);
  return {unfolded(part.output, query.sizes()), unfolded(part.log_sum_exp, query.sizes().slice(0, 3))};
}

AttentionGradients attend_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                   const at::Tensor& key, const at::Tensor& value,
                                   const AttentionPart& merged, const Visible& visible,
                                   AttentionKernel kernel) {
  const bool by_document = kernel == AttentionKernel::Aten && visible.starts.defined();
  if (by_document)
    return attend_by_document_backward(grad_output, query, key, value, merged, visible, kernel);
  const KernelTimer timer(Kernel::AttentionBackward, attention_work(query, key, visible, 4));
  if (kernel == AttentionKernel::Tiled)
    return attend_tiled_backward(grad_output, query, key, value, merged, visible);
  const Mask mask = visible.mask;
  const std::int64_t kv_heads = key.size(1);
  if (query.size(1) == kv_heads) return backward_ungrouped(grad_output, query, key, value, merged, mask);
  if (mask == Mask::Causal) return backward_by_member(grad_output, query, key, value, merged);
  const AttentionPart part{folded(merged.output, kv_heads), folded(merged.log_sum_exp, kv_heads)};
  AttentionGradients gradients =
      backward_ungrouped(folded(grad_output, kv_heads), folded(query, kv_heads), key, value, part, mask);
  gradients.query = unfolded(gradients.query, query.sizes());
  return gradients;
}

}  // namespace penstock::nn::kernels
