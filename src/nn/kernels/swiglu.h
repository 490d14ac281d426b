// SPDX-License-Identifier: Apache-2.0
// SwiGLU (Shazeer 2020): silu(gate) * up, with silu(x) = x / (1 + exp(-x)).
#pragma once

#include <ATen/core/Tensor.h>

namespace penstock::nn::kernels {

// gate, up and the result: [N, f], contiguous, same type.
at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);

// In place: gate and up become their gradients. If `result` is undefined, the output is recomputed in the
// same pass, with the bits of swiglu(), into grad_output's memory; grad_output is then undefined.
void swiglu_backward(at::Tensor& grad_output, at::Tensor& gate, at::Tensor& up, at::Tensor& result);

// SwiGLU with a factor per row: weights · silu(gate) · up, rounded once. weights [N], accumulator type.
at::Tensor weighted_swiglu(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& weights);

// In place like swiglu_backward(). Returns the gradient of the weights [N]: for each row, the dot product of
// grad_output and silu(gate) · up.
at::Tensor weighted_swiglu_backward(at::Tensor& grad_output, at::Tensor& gate, at::Tensor& up,
                                    const at::Tensor& weights, at::Tensor& result);

// Implemented in cpu/ and cuda/: the same into allocated results, without weights (elements) or with them
// (rows). `with_output`: the output overwrites grad_output.
void gate_elements(const at::Tensor& gate, const at::Tensor& up, at::Tensor& result);
void gate_elements_backward(at::Tensor& grad_output, at::Tensor& gate, at::Tensor& up, bool with_output);
void gate_rows(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& weights, at::Tensor& result);
void gate_rows_backward(at::Tensor& grad_output, at::Tensor& gate, at::Tensor& up, const at::Tensor& weights,
                        bool with_output, at::Tensor& grad_weights);

}  // namespace penstock::nn::kernels
