// SPDX-License-Identifier: Apache-2.0
// Sums of rows: of the partial results of a product whose columns are cut (docs/mesh.md, "Tensor ranks" and
// "Equal bits"), and of the rows that a token's experts have computed (docs/moe.md, "The layer").
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace penstock::nn::kernels {

// Parts of equal shape and type, contiguous, added in the accumulator type as an aligned binary tree,
// ((0+1)+(2+3))+..., and rounded once to `type`. Sums of aligned runs
// of a power of two parts, kept in the accumulator type, add up to the same bits as the parts themselves.
at::Tensor sum_parts(std::span<const at::Tensor> parts, at::ScalarType type);

// rows [R, h] to [n, h]: for each token the sum of the rows places[n, k] (int64), in that order, formed in
// the accumulator type and rounded once. `beside` [n, h], of that type, comes before them; may be undefined.
at::Tensor sum_placed_rows(const at::Tensor& rows, const at::Tensor& places, const at::Tensor& beside);

// Of cpu/ and cuda/: the same into a result of those sizes.
void add_parts(std::span<const at::Tensor> parts, at::Tensor& result);
void add_placed_rows(const at::Tensor& rows, const at::Tensor& places, const at::Tensor& beside,
                     at::Tensor& result);

}  // namespace penstock::nn::kernels
