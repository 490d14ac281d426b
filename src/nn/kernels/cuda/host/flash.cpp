// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cuda/flash.h"
#include "nn/kernels/cuda/plain_attention.h"

namespace penstock::nn::kernels::cuda {

AttentionPart flash(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, Mask mask) {
  AttentionPart part = plain_attention(query.to(at::kFloat), key.to(at::kFloat), value.to(at::kFloat), mask);
  part.output = part.output.to(at::kBFloat16);
  return part;
}

AttentionGradients flash_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                  const at::Tensor& key, const at::Tensor& value, const AttentionPart& merged,
                                  Mask mask) {
  const AttentionPart wide{merged.output.to(at::kFloat), merged.log_sum_exp};
  const AttentionGradients gradients = plain_attention_backward(
      grad_output.to(at::kFloat), query.to(at::kFloat), key.to(at::kFloat), value.to(at::kFloat), wide, mask);
  return {gradients.query.to(at::kBFloat16), gradients.key.to(at::kBFloat16),
          gradients.value.to(at::kBFloat16)};
}

}  // namespace penstock::nn::kernels::cuda
