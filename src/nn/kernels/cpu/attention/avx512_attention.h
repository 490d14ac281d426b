// SPDX-License-Identifier: Apache-2.0
// Tiled attention with our own AVX-512 products: in f32, and in bf16 on processors with avx512_bf16.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels::avx512 {

// Like attend_tiled() and attend_tiled_backward(), for f32 or bf16 where possible_products() includes Avx512.
// A query's bits depend only on its keys.
AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible);
AttentionGradients attend_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                   const at::Tensor& key, const at::Tensor& value,
                                   const AttentionPart& merged, const Visible& visible);

void softmax_tile(const at::Tensor& scores, at::Tensor& probabilities);  // tiled.h

}  // namespace penstock::nn::kernels::avx512
