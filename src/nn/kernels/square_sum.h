// SPDX-License-Identifier: Apache-2.0
// The sum of a gradient's squares.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "base/exact_sum.h"

namespace penstock::nn::kernels {

// Of f32 and f64 tensors (contiguous): of every 64 elements of one in f64, in a fixed order, of these sums
// exact. So parts cut at multiples of 64 add up to the whole, to the bit. Waits for a card once.
ExactSum square_sum(std::span<const at::Tensor> tensors);
inline ExactSum square_sum(const at::Tensor& x) { return square_sum(std::span(&x, 1)); }

}  // namespace penstock::nn::kernels
