// SPDX-License-Identifier: Apache-2.0
// Sums of partial results of a product whose columns are cut (docs/mesh.md, "Tensor ranks" and "Equal bits"),
// and sums of the rows that a token's experts computed (docs/moe.md, "The layer").
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace penstock::nn::kernels {

// Adds contiguous parts of equal shape and type in the accumulator type as an aligned binary tree,
// ((0+1)+(2+3))+..., and rounds once to `type`. Sums of aligned runs of 2^n parts, kept in the accumulator
// type, add up to the same bits as the parts themselves.
at::Tensor sum_parts(std::span<const at::Tensor> parts, at::ScalarType type);

// rows [R, h] → [n, h]: for each token, the sum of the rows in places [n, k] (int64), in that order, in the
// accumulator type and rounded once. `beside` [n, h] (accumulator type, may be undefined) is added first.
at::Tensor sum_placed_rows(const at::Tensor& rows, const at::Tensor& places, const at::Tensor& beside);

// Implemented in cpu/ and cuda/: the same into an allocated result.
void add_parts(std::span<const at::Tensor> parts, at::Tensor& result);
void add_placed_rows(const at::Tensor& rows, const at::Tensor& places, const at::Tensor& beside,
                     at::Tensor& result);

}  // namespace penstock::nn::kernels
