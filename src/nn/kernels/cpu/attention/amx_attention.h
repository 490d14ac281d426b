// SPDX-License-Identifier: Apache-2.0
// Tiled attention in bf16 by AMX's tiles: products of 32 rows at a time, whose softmax is AVX-512's.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels::amx {

// As attend_tiled() and attend_tiled_backward(); bf16, where possible_products() has them. A query's bits
// depend on its keys alone.
AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible);
AttentionGradients attend_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                   const at::Tensor& key, const at::Tensor& value,
                                   const AttentionPart& merged, const Visible& visible);

void softmax_tile(const at::Tensor& scores, at::Tensor& probabilities);  // tiled.h

}  // namespace penstock::nn::kernels::amx
