// SPDX-License-Identifier: Apache-2.0
// The forward of tiled attention by AVX2's own products, in f32. A backward by them was slower than by
// oneDNN's, whose tiles are wider.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels::avx2 {

// As attend_tiled(); f32, where possible_products() has them. A query's bits depend on its keys alone.
AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible);

void softmax_tile(const at::Tensor& scores, at::Tensor& probabilities);  // tiled.h

}  // namespace penstock::nn::kernels::avx2
