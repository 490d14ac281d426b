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

}  // namespace penstock::nn::kernels
