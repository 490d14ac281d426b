// SPDX-License-Identifier: Apache-2.0
// Products with cuBLAS, through LibTorch.
#include "nn/kernels/matmul.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include "base/error.h"
#include "nn/kernels/cuda/wide_products.h"
#include "nn/kernels/work.h"

namespace penstock::nn::kernels {

Bf16Products fastest_bf16_products() { return Bf16Products::Summed; }

at::Tensor product(const at::Tensor& x, const at::Tensor& weight) {
  const KernelTimer timer(Kernel::Product, product_work(x.size(0), x.size(1), weight.size(0)));
  return at::mm(x, weight.t());
}

void product_into(at::Tensor& result, const at::Tensor& x, const at::Tensor& weight) {
  const KernelTimer timer(Kernel::Product, product_work(x.size(0), x.size(1), weight.size(0)));
  at::mm_out(result, x, weight.t());
}

at::Tensor product_backward(const at::Tensor& grad_output, const at::Tensor& weight) {
  const KernelTimer timer(Kernel::ProductBackward,
                          product_work(grad_output.size(0), weight.size(0), weight.size(1)));
  return at::mm(grad_output, weight);
}

void product_backward_into(at::Tensor& result, const at::Tensor& grad_output, const at::Tensor& weight) {
  const KernelTimer timer(Kernel::ProductBackward,
                          product_work(grad_output.size(0), weight.size(0), weight.size(1)));
  at::mm_out(result, grad_output, weight);
}

at::Tensor product_backward_wide(const at::Tensor& grad_output, const at::Tensor& weight) {
  const KernelTimer timer(Kernel::ProductBackward,
                          product_work(grad_output.size(0), weight.size(0), weight.size(1)));
  if (grad_output.scalar_type() != at::kBFloat16) return at::mm(grad_output, weight);
  return cuda::wide_product(grad_output, weight);
}

void add_product_backward(at::Tensor& sum, const at::Tensor& grad_output, const at::Tensor& weight) {
  const KernelTimer timer(Kernel::ProductBackward,
                          product_work(grad_output.size(0), weight.size(0), weight.size(1)));
  at::addmm_out(sum, sum, grad_output, weight);
}

void accumulate_weight_gradient(at::Tensor& grad, const at::Tensor& grad_output, const at::Tensor& x,
                                Bf16Products /*products*/) {
  PENSTOCK_CHECK(grad.is_contiguous() && grad_output.is_contiguous() && x.is_contiguous(),
                 "products read rows");
  const KernelTimer timer(Kernel::WeightGradient, product_work(grad.size(0), x.size(0), grad.size(1)));
  if (x.scalar_type() != at::kBFloat16) {
    at::addmm_out(grad, grad, grad_output.t(), x);
  } else {
    cuda::add_wide_product(grad, grad_output.t(), x);
  }
}

}  // namespace penstock::nn::kernels
