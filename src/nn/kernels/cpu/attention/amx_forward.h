// SPDX-License-Identifier: Apache-2.0
// The forward of tiled attention in bf16 for processors with AMX: scores of 32 queries and a tile of keys at
// a time, whose softmax is AVX-512's.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels::amx {

// As attend_tiled(); bf16, where bf16_attention() says so. A query's bits depend on its keys alone.
AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible);

void softmax_tile(const at::Tensor& scores, at::Tensor& probabilities);  // tiled.h

}  // namespace penstock::nn::kernels::amx
