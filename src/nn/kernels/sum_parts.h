// SPDX-License-Identifier: Apache-2.0
// The sum of the partial results of a product whose columns are cut (mesh.md §2, §7).
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace penstock::nn::kernels {

// Parts of equal shape and type, contiguous, added in the accumulator type as an aligned binary tree,
// ((0+1)+(2+3))+..., and rounded once to `type`. Sums of aligned runs
// of a power of two parts, kept in the accumulator type, add up to the same bits as the parts themselves.
at::Tensor sum_parts(std::span<const at::Tensor> parts, at::ScalarType type);

// Of cpu/ and cuda/: the same into a result of those sizes.
void add_parts(std::span<const at::Tensor> parts, at::Tensor& result);

}  // namespace penstock::nn::kernels
