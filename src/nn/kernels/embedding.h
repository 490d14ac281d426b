// SPDX-License-Identifier: Apache-2.0
// Embedding lookup and its gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include "mesh/shard.h"

namespace penstock::nn::kernels {

// table [V, h], tokens [N] int64 in 0..V-1 → [N, h].
at::Tensor embed(const at::Tensor& table, const at::Tensor& tokens);

// The same for a shard of the table's rows, and its gradient: grad_table [shard's rows, h] (accumulator type)
// += rows of grad [N, h] (compute type), in token order per table row. Both skip tokens outside the shard:
// embed_held() leaves their rows of result [N, h] as they are.
void embed_held(at::Tensor& result, const at::Tensor& table, const mesh::Shard& shard,
                const at::Tensor& tokens);
void accumulate_held_embedding_gradient(at::Tensor& grad_table, const mesh::Shard& shard,
                                        const at::Tensor& grad, const at::Tensor& tokens);

// Implemented in cpu/ and cuda/: embed_held() and its gradient for checked arguments.
void take_rows(at::Tensor& result, const at::Tensor& table, const mesh::Shard& shard,
               const at::Tensor& tokens);
void add_rows_of_tokens(at::Tensor& grad_table, const mesh::Shard& shard, const at::Tensor& grad,
                        const at::Tensor& tokens);

}  // namespace penstock::nn::kernels
