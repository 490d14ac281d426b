// SPDX-License-Identifier: Apache-2.0
// Row sums δ = Σ dO·O of attention's backward (Dao 2023), for ranks that need δ but do not have O
// (docs/mesh.md, "Context ranks").
#pragma once

#include <ATen/core/Tensor.h>

namespace penstock::nn::kernels {

// a, b [b, H, T, d], last stride 1, same type → [b, H, T, 1] in the accumulator type.
at::Tensor row_dots(const at::Tensor& a, const at::Tensor& b);

// Scales each row of x [b, H, T, d] (contiguous) so that its dot product with the original row is `dots`
// [b, H, T, 1]. Zero for rows with only zeros or denormals. In x's type. Replaces O in kernels that read O
// only for δ.
at::Tensor with_row_dots(const at::Tensor& x, const at::Tensor& dots);

// Implemented in cpu/ and cuda/: the same into allocated results.
void dot_rows(const at::Tensor& a, const at::Tensor& b, at::Tensor& dots);
void rows_with_dots(const at::Tensor& x, const at::Tensor& dots, at::Tensor& result);

}  // namespace penstock::nn::kernels
