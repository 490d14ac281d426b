// SPDX-License-Identifier: Apache-2.0
// Softmax and negative log-likelihood of one tile of tokens.
#pragma once

#include <ATen/core/Tensor.h>

namespace penstock::nn::kernels {

// logits [N, V] contiguous; targets [N] int64 contiguous, -1 for none. Returns the sum over the targets of
// -log p(target), in f64 and in token order.
double cross_entropy(const at::Tensor& logits, const at::Tensor& targets);

// The same, and overwrites the logits with their gradient times gradient_scale; rows without a target become
// zero.
double cross_entropy_with_gradient(at::Tensor& logits, const at::Tensor& targets, double gradient_scale);

}  // namespace penstock::nn::kernels
