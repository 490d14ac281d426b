// SPDX-License-Identifier: Apache-2.0
// The forward of tiled attention in bf16 for processors with avx512_bf16 and without AMX: scores, softmax and
// output of eight queries at a time, whose scores stay in the L1 cache.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels::avx512 {

// As attend_tiled(); bf16, where bf16_attention() says so. A query's bits depend on its keys alone.
AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible);

void softmax_tile(const at::Tensor& scores, at::Tensor& probabilities);  // tiled.h

}  // namespace penstock::nn::kernels::avx512
