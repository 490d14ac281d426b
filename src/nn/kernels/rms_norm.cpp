// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/rms_norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "base/error.h"
#include "nn/kernels/element_dispatch.h"
#include "nn/kernels/work.h"

namespace penstock::nn::kernels {

Normed rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  at::Tensor sum;
  return rms_norm_of_sum(x, {}, weight, epsilon, sum);
}

Normed rms_norm_of_sum(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                       double epsilon, at::Tensor& sum) {
  const KernelTimer timer(Kernel::Norm, memory_work(x, branch, branch, x));
  PENSTOCK_CHECK(x.dim() == 2 && x.is_contiguous(), "kernels read contiguous rows");
  PENSTOCK_CHECK(!branch.defined() || (branch.is_contiguous() && branch.sizes() == x.sizes()),
                 "kernels read contiguous rows");
  if (branch.defined()) sum = at::empty_like(x);
  Normed result{at::empty_like(x),
                at::empty({x.size(0)}, x.options().dtype(accumulator_type(x.scalar_type())))};
  norm_rows(x, branch, weight, epsilon, sum, result);
  return result;
}

at::Tensor rms_norm_backward(const at::Tensor& grad_output, const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& scale, const at::Tensor& residual, at::Tensor& grad_weight) {
  const KernelTimer timer(Kernel::NormBackward, memory_work(grad_output, x, residual, x));
  PENSTOCK_CHECK(grad_output.is_contiguous() && x.is_contiguous(), "kernels read contiguous rows");
  PENSTOCK_CHECK(!residual.defined() || residual.is_contiguous(), "kernels read contiguous rows");
  at::Tensor grad_input = at::empty_like(x);
  norm_rows_backward(grad_output, x, weight, scale, residual, grad_input, grad_weight);
  return grad_input;
}

}  // namespace penstock::nn::kernels
