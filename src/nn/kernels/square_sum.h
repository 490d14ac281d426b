// SPDX-License-Identifier: Apache-2.0
// The sum of a gradient's squares.
#pragma once

#include <ATen/core/Tensor.h>

#include "base/exact_sum.h"

namespace penstock::nn::kernels {

// Of an f32 or f64 tensor (contiguous): of every 64 elements in f64, in a fixed order, of these sums exact.
// So parts cut at multiples of 64 add up to the whole, to the bit.
ExactSum square_sum(const at::Tensor& x);

}  // namespace penstock::nn::kernels
