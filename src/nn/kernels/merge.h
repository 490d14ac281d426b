// SPDX-License-Identifier: Apache-2.0
// Merges attention over parts of the keys by log-sum-exp (docs/slimpipe.md, "Context exchange"): lse =
// log(e^lse1 + e^lse2), O = e^(lse1−lse)·O1 + e^(lse2−lse)·O2.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels {

// Merges `part` into `total`. total's output is in the accumulator type; part's may be in the compute type.
void merge(AttentionPart& total, const AttentionPart& part);

// The same for the queries first, first + 1, ... of the total. A side with log-sum-exp -infinity (no keys)
// leaves the other side unchanged.
void merge_at(AttentionPart& total, std::int64_t first, const AttentionPart& part);

// Attention over no keys: output zeros of `sizes` [b, H, T, d] and log_sum_exp -infinity [b, H, T], both
// contiguous, on like's device and in its accumulator type.
AttentionPart no_attention(at::IntArrayRef sizes, const at::Tensor& like);

// Implemented in cpu/ and cuda/: merge_at() for checked arguments.
void merge_rows(AttentionPart& total, std::int64_t first, const AttentionPart& part);

}  // namespace penstock::nn::kernels
