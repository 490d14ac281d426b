// SPDX-License-Identifier: Apache-2.0
// bf16 products with sums in f32: by cuBLAS on a GPU; on a host, in tests, with operands widened to f32.
#pragma once

#include <ATen/core/Tensor.h>

namespace penstock::nn::kernels::cuda {

// a [N, inner] · b [inner, M] → [N, M] in f32.
at::Tensor wide_product(const at::Tensor& a, const at::Tensor& b);

// sum (f32) += a · b.
void add_wide_product(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);

}  // namespace penstock::nn::kernels::cuda
