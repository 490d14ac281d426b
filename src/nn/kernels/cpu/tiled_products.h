// SPDX-License-Identifier: Apache-2.0
// Weight gradients in bf16 with f32 sums, by tiles in cache: for processors that have bf16 products but no
// MKL that uses them.
#pragma once

#include <ATen/core/Tensor.h>

namespace penstock::nn::kernels {

// Whether this machine multiplies tiles of a type (f32, bf16); found by trial.
bool has_tile_products(at::ScalarType type);

// The type in which tiles of operands of a type are multiplied: bf16 where it has products, else f32.
inline at::ScalarType multiplied_type(at::ScalarType type) {
  return type == at::kBFloat16 && has_tile_products(type) ? type : at::kFloat;
}

// grad [out, in] f32 += grad_outputᵀ · x, both bf16 [N, ...], contiguous. The order of the sum over tokens
// does not depend on the threads. Needs scratch memory for a copy of both.
void accumulate_by_tiles(at::Tensor& grad, const at::Tensor& grad_output, const at::Tensor& x);

}  // namespace penstock::nn::kernels
