// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cuda/flash.h"

#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/empty.h>

#include <utility>

#include "nn/kernels/cuda/gpu/cudnn_attention.h"

namespace penstock::nn::kernels::cuda {
namespace {

// Placeholder for the state of random numbers, which no kernel reads without dropout.
at::Tensor no_randomness(const at::Tensor& x) { return at::empty({2}, x.options().dtype(at::kLong)); }

}  // namespace

AttentionPart flash(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, Mask mask) {
  if (has_cudnn_attention(query, key)) {
    if (auto part = cudnn_attention(query, key, value, mask)) return *std::move(part);
  }
  const auto result = at::_scaled_dot_product_flash_attention(query, key, value, 0.0, mask == Mask::Causal);
  return {std::get<0>(result), std::get<1>(result).contiguous()};
}

AttentionGradients flash_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                  const at::Tensor& key, const at::Tensor& value, const AttentionPart& merged,
                                  Mask mask) {
  if (has_cudnn_attention(query, key)) {
    auto gradients = cudnn_attention_backward(grad_output, query, key, value, merged, mask, must_repeat());
    if (gradients) return *std::move(gradients);
  }
  const at::Tensor random = no_randomness(query);
  auto [grad_query, grad_key, grad_value] = at::_scaled_dot_product_flash_attention_backward(
      grad_output, query, key, value, merged.output, merged.log_sum_exp, {}, {}, query.size(2), key.size(2),
      0.0, mask == Mask::Causal, random, random);
  return {grad_query, grad_key, grad_value};
}

}  // namespace penstock::nn::kernels::cuda
