// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/swiglu.h"

#include <ATen/ops/empty_like.h>

#include <utility>

#include "base/error.h"
#include "nn/kernels/work.h"

namespace penstock::nn::kernels {
namespace {

void check_gated(const at::Tensor& gate, const at::Tensor& up) {
  PENSTOCK_CHECK(gate.is_contiguous() && up.is_contiguous(), "kernels read contiguous rows");
}

void check_weighted(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& weights) {
  check_gated(gate, up);
  PENSTOCK_CHECK(weights.is_contiguous() && weights.numel() == gate.size(0), "every row has a weight");
}

}  // namespace

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  const KernelTimer timer(Kernel::Swiglu, memory_work(gate, up, gate));
  check_gated(gate, up);
  at::Tensor result = at::empty_like(gate);
  gate_elements(gate, up, result);
  return result;
}

void swiglu_backward(at::Tensor& grad_output, at::Tensor& gate, at::Tensor& up, at::Tensor& result) {
  const KernelTimer timer(Kernel::SwigluBackward, memory_work(grad_output, gate, up, gate, up, result));
  check_gated(gate, up);
  PENSTOCK_CHECK(grad_output.is_contiguous(), "kernels read contiguous rows");
  gate_elements_backward(grad_output, gate, up, !result.defined());
  if (!result.defined()) result = std::move(grad_output);
}

at::Tensor weighted_swiglu(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& weights) {
  const KernelTimer timer(Kernel::Swiglu, memory_work(gate, up, gate));
  check_weighted(gate, up, weights);
  at::Tensor result = at::empty_like(gate);
  gate_rows(gate, up, weights, result);
  return result;
}

at::Tensor weighted_swiglu_backward(at::Tensor& grad_output, at::Tensor& gate, at::Tensor& up,
                                    const at::Tensor& weights, at::Tensor& result) {
  const KernelTimer timer(Kernel::SwigluBackward, memory_work(grad_output, gate, up, gate, up, result));
  check_weighted(gate, up, weights);
  PENSTOCK_CHECK(grad_output.is_contiguous(), "kernels read contiguous rows");
  at::Tensor grad_weights = at::empty_like(weights);
  gate_rows_backward(grad_output, gate, up, weights, !result.defined(), grad_weights);
  if (!result.defined()) result = std::move(grad_output);
  return grad_weights;
}

}  // namespace penstock::nn::kernels
