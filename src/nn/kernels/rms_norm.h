// SPDX-License-Identifier: Apache-2.0
// Root-mean-square normalisation (Zhang and Sennrich 2019): y = weight * x / sqrt(mean(x^2) + epsilon), row
// by row.
#pragma once

#include <ATen/core/Tensor.h>

namespace penstock::nn::kernels {

struct Normed {
  at::Tensor output;  // [N, h], type of x
  at::Tensor scale;   // [N], 1 / sqrt(mean(x^2) + epsilon) in the accumulator type
};

// x [N, h] contiguous, weight [h] of the same type.
Normed rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon);

// sum = x + branch, rounded to their type, and its norm, in one pass; same bits as two separate passes.
Normed rms_norm_of_sum(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                       double epsilon, at::Tensor& sum);

// Returns the gradient of x [N, h], with `residual` [N, h] (may be undefined) added before rounding. Adds the
// weight's gradient to grad_weight [h], in the accumulator type.
at::Tensor rms_norm_backward(const at::Tensor& grad_output, const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& scale, const at::Tensor& residual, at::Tensor& grad_weight);

// Implemented in cpu/ and cuda/: the same into allocated results. Without a branch, `sum` is not used.
void norm_rows(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight, double epsilon,
               at::Tensor& sum, Normed& result);
void norm_rows_backward(const at::Tensor& grad_output, const at::Tensor& x, const at::Tensor& weight,
                        const at::Tensor& scale, const at::Tensor& residual, at::Tensor& grad_input,
                        at::Tensor& grad_weight);

}  // namespace penstock::nn::kernels
