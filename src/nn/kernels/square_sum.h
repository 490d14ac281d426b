// SPDX-License-Identifier: Apache-2.0
// Sum of a gradient's squares.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "base/exact_sum.h"

namespace penstock::nn::kernels {

// For contiguous f32 and f64 tensors. Sums every 64 elements of a tensor in f64 in a fixed order, then adds
// these sums exactly: parts cut at multiples of 64 add up to the bits of the whole. Waits for a GPU once.
ExactSum square_sum(std::span<const at::Tensor> tensors);
inline ExactSum square_sum(const at::Tensor& x) { return square_sum(std::span(&x, 1)); }

}  // namespace penstock::nn::kernels
