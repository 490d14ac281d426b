// SPDX-License-Identifier: Apache-2.0
// The gated unit of Shazeer 2020: silu(gate) * up, with silu(x) = x / (1 + exp(-x)).
#pragma once

#include <ATen/core/Tensor.h>

namespace penstock::nn::kernels {

// gate, up and the result [N, f], contiguous, one type.
at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);

struct SwigluGradients {
  at::Tensor gate;  // [N, f]
  at::Tensor up;
};

// An undefined `result` is computed in the same pass, with the bits of swiglu().
SwigluGradients swiglu_backward(const at::Tensor& grad_output, const at::Tensor& gate, const at::Tensor& up,
                                at::Tensor& result);

// The same with a factor for each row, in the accumulator type: weights[N] · silu(gate) · up, rounded once.
at::Tensor weighted_swiglu(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& weights);

struct WeightedSwigluGradients {
  at::Tensor gate, up;  // [N, f]
  at::Tensor weights;   // [N], of each row the product of grad_output with silu(gate) · up
};
WeightedSwigluGradients weighted_swiglu_backward(const at::Tensor& grad_output, const at::Tensor& gate,
                                                 const at::Tensor& up, const at::Tensor& weights,
                                                 at::Tensor& result);

}  // namespace penstock::nn::kernels
