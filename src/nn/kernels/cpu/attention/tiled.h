// SPDX-License-Identifier: Apache-2.0
// Flash attention (Dao 2023) on oneDNN's batch-reduce matrix products: tiles of scores stay in cache, with
// our own softmax. Two to four times as fast as ATen's kernel where that has no fast product (bf16 on
// processors other than Intel's; its backward everywhere).
//
// Processors with AVX-512 have their own products, for bf16 by AMX's tiles where there are some
// (products_choice.h): scores become probabilities in a near cache.
//
// Keys and queries are repacked once a call (bf16 products need interleaved pairs of rows). Products sum in
// f32; probabilities and their gradients are rounded to the compute type, as everywhere. Tasks are heads, or
// tiles of queries, and independent of each other: bits do not depend on the number of threads.
#pragma once

#include "nn/kernels/attention.h"
#include "nn/kernels/cpu/attention/products_choice.h"

namespace penstock::nn::kernels {

// As attend() and attend_backward(), but all results in f32; for types with has_tile_products()
// (tiled_products.h), and for bf16 where only f32 has them: then of copies in f32.
AttentionPart attend_tiled(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const Visible& visible);
AttentionGradients attend_tiled_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                         const at::Tensor& key, const at::Tensor& value,
                                         const AttentionPart& merged, const Visible& visible);

// The same by other products than the fastest: one of possible_products(), of tensors of one type.
AttentionPart attend_tiled(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const Visible& visible, AttentionProducts products);
AttentionGradients attend_tiled_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                         const at::Tensor& key, const at::Tensor& value,
                                         const AttentionPart& merged, const Visible& visible,
                                         AttentionProducts products);

// The softmax alone, as the forward computes it of scores that are all seen: their probabilities, in the type
// of the tiles. Scores [keys, 32] of own products, keys a multiple of 256, else [queries, 256]. For
// benchmarks.
void softmax_tile(const at::Tensor& scores, at::Tensor& probabilities);

}  // namespace penstock::nn::kernels
