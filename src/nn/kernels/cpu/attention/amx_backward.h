// SPDX-License-Identifier: Apache-2.0
// The backward of tiled attention in bf16 for processors with AMX: scores and gradients of probabilities of
// 32 keys and 32 queries at a time.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels::amx {

// As attend_tiled_backward(); bf16, where bf16_attention() says so.
AttentionGradients attend_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                   const at::Tensor& key, const at::Tensor& value,
                                   const AttentionPart& merged, const Visible& visible);

}  // namespace penstock::nn::kernels::amx
