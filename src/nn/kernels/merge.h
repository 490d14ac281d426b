// SPDX-License-Identifier: Apache-2.0
// Combines attention over parts of the keys by log-sum-exp (docs/slimpipe.md, "Context exchange"): lse =
// log(e^lse1 + e^lse2), O = e^(lse1−lse)·O1 + e^(lse2−lse)·O2.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels {

// Merges `part` into `total`, whose output is in the accumulator type; part's output may be in the compute
// type.
void merge(AttentionPart& total, const AttentionPart& part);

// The same for the queries first, first + 1, ... of the total. A log-sum-exp of -infinity is of no keys: the
// other side stays as it is.
void merge_at(AttentionPart& total, std::int64_t first, const AttentionPart& part);

// Attention over no keys: zeros and -infinity, where `like` is and in its accumulator type. output [b, H, T,
// d] and log_sum_exp [b, H, T], contiguous.
AttentionPart no_attention(at::IntArrayRef sizes, const at::Tensor& like);

// Of cpu/ and cuda/: merge_at() of checked arguments.
void merge_rows(AttentionPart& total, std::int64_t first, const AttentionPart& part);

}  // namespace penstock::nn::kernels
