// SPDX-License-Identifier: Apache-2.0
// Rows of a table by token.
#pragma once

#include <ATen/core/Tensor.h>

#include "mesh/shard.h"

namespace penstock::nn::kernels {

// table [V, h], tokens [N] int64 in 0..V-1, result [N, h].
at::Tensor embed(const at::Tensor& table, const at::Tensor& tokens);

// grad_table [V, h] (accumulator type) += rows of grad [N, h] (compute type), each row's tokens in order.
void accumulate_embedding_gradient(at::Tensor& grad_table, const at::Tensor& grad, const at::Tensor& tokens);

// The same for a shard of the table's rows: sets the rows of the result [N, h] whose tokens it holds, and
// adds those of the gradient.
void embed_held(at::Tensor& result, const at::Tensor& table, const mesh::Shard& shard,
                const at::Tensor& tokens);
void accumulate_held_embedding_gradient(at::Tensor& grad_table, const mesh::Shard& shard,
                                        const at::Tensor& grad, const at::Tensor& tokens);

}  // namespace penstock::nn::kernels
