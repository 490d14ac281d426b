// SPDX-License-Identifier: Apache-2.0
// Rows of a table by token.
#pragma once

#include <ATen/core/Tensor.h>

namespace penstock::nn::kernels {

// table [V, h], tokens [N] int64 in 0..V-1, result [N, h].
at::Tensor embed(const at::Tensor& table, const at::Tensor& tokens);

// grad_table [V, h] (accumulator type) += rows of grad [N, h] (compute type), each row's tokens in order.
void accumulate_embedding_gradient(at::Tensor& grad_table, const at::Tensor& grad, const at::Tensor& tokens);

}  // namespace penstock::nn::kernels
