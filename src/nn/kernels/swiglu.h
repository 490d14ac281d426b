// SPDX-License-Identifier: Apache-2.0
// The gated unit of Shazeer 2020: silu(gate) * up, with silu(x) = x / (1 + exp(-x)).
#pragma once

#include <ATen/core/Tensor.h>

namespace penstock::nn::kernels {

// gate, up and the result [N, f], contiguous, one type.
at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);

// In place: gate and up become their gradients. An undefined `result` is computed in the same pass, with the
// bits of swiglu(), and takes the place of grad_output, which is undefined from then on.
void swiglu_backward(at::Tensor& grad_output, at::Tensor& gate, at::Tensor& up, at::Tensor& result);

// The same with a factor for each row, in the accumulator type: weights[N] · silu(gate) · up, rounded once.
at::Tensor weighted_swiglu(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& weights);

// In place as swiglu_backward(). Returns the gradient of the weights [N]: of each row the product of
// grad_output with silu(gate) · up.
at::Tensor weighted_swiglu_backward(at::Tensor& grad_output, at::Tensor& gate, at::Tensor& up,
                                    const at::Tensor& weights, at::Tensor& result);

// Of cpu/ and cuda/: the same into results that are there, over all elements alike or over rows with their
// weights. `with_output`: the output takes the place of grad_output.
void gate_elements(const at::Tensor& gate, const at::Tensor& up, at::Tensor& result);
void gate_elements_backward(at::Tensor& grad_output, at::Tensor& gate, at::Tensor& up, bool with_output);
void gate_rows(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& weights, at::Tensor& result);
void gate_rows_backward(at::Tensor& grad_output, at::Tensor& gate, at::Tensor& up, const at::Tensor& weights,
                        bool with_output, at::Tensor& grad_weights);

}  // namespace penstock::nn::kernels
