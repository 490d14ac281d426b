// SPDX-License-Identifier: Apache-2.0
// Combines attention over parts of the keys by log-sum-exp (algorithms, "Attention context exchange"): lse =
// log(e^lse1 + e^lse2), O = e^(lse1−lse)·O1 + e^(lse2−lse)·O2.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels {

// Merges `part` into `total`, whose output is in the accumulator type; part's output may be in the compute
// type.
void merge(AttentionPart& total, const AttentionPart& part);

}  // namespace penstock::nn::kernels
