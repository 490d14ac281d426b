// SPDX-License-Identifier: Apache-2.0
// One call of a library's fused attention in bf16. On a host, in tests, plain attention in f32.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels::cuda {

// As attend() and attend_backward() of whole sequences in bf16, with results in bf16 and the log-sum-exp in
// f32. A causal call has as many queries as keys: libraries disagree about others. The backward has the same
// bits every time.
AttentionPart flash(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, Mask mask);
AttentionGradients flash_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                  const at::Tensor& key, const at::Tensor& value, const AttentionPart& merged,
                                  Mask mask);

}  // namespace penstock::nn::kernels::cuda
