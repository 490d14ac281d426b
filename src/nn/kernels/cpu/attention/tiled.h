// SPDX-License-Identifier: Apache-2.0
// Flash attention (Dao 2023) on oneDNN's batch-reduce matrix products: tiles of scores stay in cache, with
// our own softmax. Two to four times as fast as ATen's kernel where that has no fast product (bf16 on
// processors other than Intel's; its backward everywhere).
//
// Where the processor has AVX2, AVX-512 or AMX, our own products replace oneDNN's (products_choice.h): scores
// become probabilities in a near cache.
//
// Keys and queries are repacked once per call (bf16 products need interleaved pairs of rows). Products sum in
// f32; probabilities and their gradients are rounded to the compute type. Tasks are heads or tiles of queries
// and independent of each other, so bits do not depend on the number of threads.
#pragma once

#include "nn/kernels/attention.h"
#include "nn/kernels/cpu/attention/products_choice.h"

namespace penstock::nn::kernels {

// Like attend() and attend_backward(), but all results are f32. For types with has_tile_products()
// (tiled_products.h); where only f32 has them, bf16 tensors are copied to f32.
AttentionPart attend_tiled(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const Visible& visible);
AttentionGradients attend_tiled_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                         const at::Tensor& key, const at::Tensor& value,
                                         const AttentionPart& merged, const Visible& visible);

// The same with given products, one of possible_products(), on tensors of one type.
AttentionPart attend_tiled(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const Visible& visible, AttentionProducts products);
AttentionGradients attend_tiled_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                         const at::Tensor& key, const at::Tensor& value,
                                         const AttentionPart& merged, const Visible& visible,
                                         AttentionProducts products);

// Only the softmax of the forward, for scores that are all visible; probabilities are in the type of the
// tiles. Scores are [keys, 32] for our own products, keys a multiple of 256, else [queries, 256]. For
// benchmarks.
void softmax_tile(const at::Tensor& scores, at::Tensor& probabilities);

}  // namespace penstock::nn::kernels
