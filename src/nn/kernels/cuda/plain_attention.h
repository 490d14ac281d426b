// SPDX-License-Identifier: Apache-2.0
// Attention by plain matrix products over tiles of queries, for tests and small models in f32 and f64: no
// library has a fused kernel for these types on a GPU.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels::cuda {

// attend() and attend_backward() for whole sequences (no document starts).
AttentionPart plain_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                              Mask mask);
AttentionGradients plain_attention_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                            const at::Tensor& key, const at::Tensor& value,
                                            const AttentionPart& merged, Mask mask);

}  // namespace penstock::nn::kernels::cuda
