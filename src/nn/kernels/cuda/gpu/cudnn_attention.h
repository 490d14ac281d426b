// SPDX-License-Identifier: Apache-2.0
// bf16 attention with cuDNN graphs, on Hopper and later GPUs. LibTorch 2.11 has an op for it, but the op's
// backward does not repeat its bits, and it mixes up plans that differ only in their outputs' memory layout.
#pragma once

#include <optional>

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels::cuda {

// Whether cuDNN is used on this GPU for query [b, H, T, d] and key [b, K, C, d]. cuDNN compiles a plan for
// each new shape, so only for whole tiles, as in slices; documents have arbitrary lengths. Depends only on
// the GPU and the sizes.
bool has_cudnn_attention(const at::Tensor& query, const at::Tensor& key);

// Like flash() and flash_backward(); empty if cuDNN does not support these sizes on this GPU. One plan per
// thread, sizes and strides. A repeatable backward takes 2·queries·keys bytes per head for at most 32 heads
// at a time; with more heads and several sequences it copies the log-sum-exp. Throws RunError for other cuDNN
// errors.
std::optional<AttentionPart> cudnn_attention(const at::Tensor& query, const at::Tensor& key,
                                             const at::Tensor& value, Mask mask);
std::optional<AttentionGradients> cudnn_attention_backward(const at::Tensor& grad_output,
                                                           const at::Tensor& query, const at::Tensor& key,
                                                           const at::Tensor& value,
                                                           const AttentionPart& merged, Mask mask,
                                                           bool repeatable);

}  // namespace penstock::nn::kernels::cuda
