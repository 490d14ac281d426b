// SPDX-License-Identifier: Apache-2.0
// Products of f32 by tiles in cache, for AMD's processors with vector units of 512 bits, of which MKL uses
// half.
#pragma once

#include <ATen/core/Tensor.h>

namespace penstock::nn::kernels {

// Whether this is such a processor (Zen 5 or later; known by an instruction that Zen 4 lacks).
bool f32_is_faster_by_tiles();

// result [R, S] = a [R, K] · b [K, S], or += if `adds`; all f32. The rows of `result` are contiguous; of `a`
// and `b` the rows or the columns. The order of the sums depends on K alone. Needs has_tile_products(f32).
void multiply_by_tiles(at::Tensor& result, const at::Tensor& a, const at::Tensor& b, bool adds);

}  // namespace penstock::nn::kernels
