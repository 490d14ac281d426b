// SPDX-License-Identifier: Apache-2.0
// Row sums δ = Σ dO·O of attention's backward (Dao 2023), where the ranks that need them lack O
// (docs/mesh.md, "Context ranks").
#pragma once

#include <ATen/core/Tensor.h>

namespace penstock::nn::kernels {

// [b, H, T, d], last stride 1, both of one type → [b, H, T, 1] in the accumulator type.
at::Tensor row_dots(const at::Tensor& a, const at::Tensor& b);

// The multiple of each row of x [b, H, T, d] (contiguous) whose product with that row has the sum `dots`
// [b, H, T, 1]; zero for a row of zeros or of numbers too small to be normal. In x's type. It stands for O in
// kernels that read O for δ alone.
at::Tensor with_row_dots(const at::Tensor& x, const at::Tensor& dots);

// Of cpu/ and cuda/: the same into results that are there.
void dot_rows(const at::Tensor& a, const at::Tensor& b, at::Tensor& dots);
void rows_with_dots(const at::Tensor& x, const at::Tensor& dots, at::Tensor& result);

}  // namespace penstock::nn::kernels
