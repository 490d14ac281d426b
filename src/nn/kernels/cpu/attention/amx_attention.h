// SPDX-License-Identifier: Apache-2.0
// Tiled attention in bf16 with AMX tiles: products of 32 rows at a time, with the softmax in AVX-512.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels::amx {

// Like attend_tiled() and attend_tiled_backward(), for bf16 where possible_products() includes Amx. A query's
// bits depend only on its keys.
AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible);
AttentionGradients attend_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                   const at::Tensor& key, const at::Tensor& value,
                                   const AttentionPart& merged, const Visible& visible);

void softmax_tile(const at::Tensor& scores, at::Tensor& probabilities);  // tiled.h

}  // namespace penstock::nn::kernels::amx
