// SPDX-License-Identifier: Apache-2.0
// Weight gradients in bf16 with f32 sums, by tiles in cache, for processors whose bf16 products MKL does not
// use.
#pragma once

#include <ATen/core/Tensor.h>

namespace penstock::nn::kernels {

// Whether this machine multiplies tiles of a type (f32, bf16). Found by a trial product.
bool has_tile_products(at::ScalarType type);

// Type in which tiles of `type` are multiplied: bf16 for bf16 if it has tile products, else f32.
inline at::ScalarType multiplied_type(at::ScalarType type) {
  return type == at::kBFloat16 && has_tile_products(type) ? type : at::kFloat;
}

// grad [out, in] f32 += grad_outputᵀ · x, both bf16 [N, ...], contiguous. The order of the sum over tokens
// does not depend on the number of threads. Allocates a workspace for a copy of both.
void accumulate_by_tiles(at::Tensor& grad, const at::Tensor& grad_output, const at::Tensor& x);

}  // namespace penstock::nn::kernels
