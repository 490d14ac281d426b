// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cuda/wide_products.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

namespace penstock::nn::kernels::cuda {

at::Tensor wide_product(const at::Tensor& a, const at::Tensor& b) { return at::mm(a, b, at::kFloat); }

void add_wide_product(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  at::addmm_out(sum, sum, a, b, at::kFloat);
}

}  // namespace penstock::nn::kernels::cuda
