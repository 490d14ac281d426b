// SPDX-License-Identifier: Apache-2.0
// Attention in bf16 by graphs of cuDNN's, on Hopper and later cards. LibTorch 2.11 has an op for it, which
// does not repeat the bits of its backward, and takes plans for each other whose outputs lie differently in
// memory.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels::cuda {

// Whether this card's cuDNN computes these [b, H, T, d] and [b, K, C, d]. It compiles a plan for each new
// shape, so only for whole tiles, as slices are; documents have a length each. Depends on sizes alone.
bool has_cudnn_attention(const at::Tensor& query, const at::Tensor& key);

// As flash() and flash_backward(). One plan for each shape and thread. A repeatable backward takes
// 2·queries·keys bytes for each of at most 32 heads at a time; if there are more, and several sequences, it
// copies their log-sum-exps. Errors of cuDNN's are RunErrors.
AttentionPart cudnn_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                              Mask mask);
AttentionGradients cudnn_attention_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                            const at::Tensor& key, const at::Tensor& value,
                                            const AttentionPart& merged, Mask mask, bool repeatable);

}  // namespace penstock::nn::kernels::cuda
