// SPDX-License-Identifier: Apache-2.0
// The forward of tiled attention with our own AVX2 products, in f32. A backward with them was slower than
// with oneDNN's, whose tiles are wider.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels::avx2 {

// Like attend_tiled(), for f32 where possible_products() has Avx2. A query's bits depend only on its keys.
AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible);

void softmax_tile(const at::Tensor& scores, at::Tensor& probabilities);  // tiled.h

}  // namespace penstock::nn::kernels::avx2
