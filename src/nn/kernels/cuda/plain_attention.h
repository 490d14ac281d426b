// SPDX-License-Identifier: Apache-2.0
// Attention by plain products over tiles of queries, in f32 and f64, for which no library has a fused kernel
// on a card: for tests and small models.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels::cuda {

// As attend() and attend_backward() of whole sequences.
AttentionPart plain_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                              Mask mask);
AttentionGradients plain_attention_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                            const at::Tensor& key, const at::Tensor& value,
                                            const AttentionPart& merged, Mask mask);

}  // namespace penstock::nn::kernels::cuda
