// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cuda/flash.h"

#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

namespace penstock::nn::kernels::cuda {
namespace {

// cuDNN's kernels are the faster ones from Hopper on, and have no others' limits there.
bool has_hopper(const at::Tensor& x) {
  int major = 0;
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, x.get_device()));
  return major >= 9;
}

// Without dropout no kernel reads a state of random numbers.
at::Tensor no_randomness(const at::Tensor& x) { return at::empty({2}, x.options().dtype(at::kLong)); }

}  // namespace

AttentionPart flash(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, Mask mask) {
  const bool causal = mask == Mask::Causal;
  if (has_hopper(query)) {
    const auto result = at::_scaled_dot_product_cudnn_attention(query, key, value, std::nullopt,
                                                                /*compute_log_sumexp=*/true, 0.0, causal);
    return {std::get<0>(result), std::get<1>(result).reshape(query.sizes().slice(0, 3))};
  }
  const auto result = at::_scaled_dot_product_flash_attention(query, key, value, 0.0, causal);
  return {std::get<0>(result), std::get<1>(result).contiguous()};
}

AttentionGradients flash_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                  const at::Tensor& key, const at::Tensor& value, const AttentionPart& merged,
                                  Mask mask) {
  const bool causal = mask == Mask::Causal;
  const std::int64_t queries = query.size(2), keys = key.size(2);
  const at::Tensor random = no_randomness(query);
  if (has_hopper(query)) {
    auto [grad_query, grad_key, grad_value] = at::_scaled_dot_product_cudnn_attention_backward(
        grad_output, query, key, value, merged.output, merged.log_sum_exp.unsqueeze(-1), random, random, {},
        {}, {}, queries, keys, 0.0, causal);
    return {grad_query, grad_key, grad_value};
  }
  auto [grad_query, grad_key, grad_value] = at::_scaled_dot_product_flash_attention_backward(
      grad_output, query, key, value, merged.output, merged.log_sum_exp, {}, {}, queries, keys, 0.0, causal,
      random, random);
  return {grad_query, grad_key, grad_value};
}

}  // namespace penstock::nn::kernels::cuda
