// SPDX-License-Identifier: Apache-2.0
// A library's fused attention in bf16. On a host, in tests, plain attention in f32.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels::cuda {

// One call, as attend() and attend_backward() of whole sequences in bf16, with results in bf16 and the
// log-sum-exp in f32. A causal call has as many queries as keys: libraries disagree about others. The
// backward has the same bits every time (backend/device.h).
AttentionPart flash(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, Mask mask);
AttentionGradients flash_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                  const at::Tensor& key, const at::Tensor& value, const AttentionPart& merged,
                                  Mask mask);

// The same by calls of at most `block` queries and keys, whose gradients are added in f32 in a fixed order: a
// backward of cuDNN's that repeats its bits takes 2·heads·queries·keys bytes on Hopper.
inline constexpr std::int64_t kFlashBlock = 4096;
AttentionGradients flash_backward_by_blocks(const at::Tensor& grad_output, const at::Tensor& query,
                                            const at::Tensor& key, const at::Tensor& value,
                                            const AttentionPart& merged, Mask mask,
                                            std::int64_t block = kFlashBlock);

}  // namespace penstock::nn::kernels::cuda
