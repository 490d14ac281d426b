// SPDX-License-Identifier: Apache-2.0
// Products of bf16 whose sums stay in f32: cuBLAS has them; on a host, in tests, operands are widened.
#pragma once

#include <ATen/core/Tensor.h>

namespace penstock::nn::kernels::cuda {

// [N, inner] · [inner, M] in f32.
at::Tensor wide_product(const at::Tensor& a, const at::Tensor& b);

// sum (f32) += a · b.
void add_wide_product(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);

}  // namespace penstock::nn::kernels::cuda
