// SPDX-License-Identifier: Apache-2.0
// The backward of tiled attention in bf16 for processors with avx512_bf16 and without AMX. Scores and the
// gradients of probabilities are never stored: both become probabilities and gradients of scores in
// registers.
#pragma once

#include "nn/kernels/attention.h"

namespace penstock::nn::kernels::avx512 {

// As attend_tiled_backward(); bf16, where bf16_attention() says so.
AttentionGradients attend_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                   const at::Tensor& key, const at::Tensor& value,
                                   const AttentionPart& merged, const Visible& visible);

}  // namespace penstock::nn::kernels::avx512
