// SPDX-License-Identifier: Apache-2.0
// Flash attention (Dao 2023) on oneDNN's batch-reduce matrix products: tiles of scores stay in cache, with
// our own softmax. Two to four times as fast as ATen's kernel where that has no fast product (bf16 on
// processors other than Intel's; its backward everywhere).
//
// bf16 on processors with avx512_bf16 has its own products, by AMX's tiles where there are some
// (bf16_choice.h): scores become probabilities in a near cache.
//
// Keys and queries are repacked once a call (bf16 products need interleaved pairs of rows). Products sum in
// f32; probabilities and their gradients are rounded to the compute type, as everywhere. Tasks are heads, or
// tiles of queries, and independent of each other: bits do not depend on the number of threads.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels {

// As attend() and attend_backward(), but all results in f32; for types with has_tile_products()
// (tiled_products.h), and for bf16 where only f32 has them: then of copies in f32.
AttentionPart attend_tiled(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const Visible& visible);
AttentionGradients attend_tiled_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                         const at::Tensor& key, const at::Tensor& value,
                                         const AttentionPart& merged, const Visible& visible);

// The softmax alone, as the forward computes it of a tile of scores [rows, 256] that are all seen: their
// probabilities, in the type of the tiles. rows is a multiple of 8. For benchmarks.
void softmax_tile(const at::Tensor& scores, at::Tensor& probabilities);

}  // namespace penstock::nn::kernels
