// SPDX-License-Identifier: Apache-2.0
// A library's fused attention in bf16. On a host, in tests, plain attention in f32.
#pragma once

#include <ATen/Context.h>

#include "model/joined_keys.h"
#include "nn/kernels/attention.h"

namespace penstock::nn::kernels::cuda {

// Whether sums are made in the same order every time (backend/device.h).
inline bool must_repeat() { return at::globalContext().deterministicAlgorithms(); }

// One call, as attend() and attend_backward() of whole sequences in bf16, with results in bf16 and the
// log-sum-exp in f32. A causal call has as many queries as keys: libraries disagree about others. The
// backward has the same bits every time, if it must.
AttentionPart flash(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, Mask mask);
AttentionGradients flash_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                  const at::Tensor& key, const at::Tensor& value, const AttentionPart& merged,
                                  Mask mask);

// The same by calls of at most `block` queries and keys, or of fewer queries and more earlier keys
// (model/joined_keys.h), whose gradients are added in f32 in a fixed order: a backward of cuDNN's that
// repeats its bits takes 2·heads·queries·keys bytes on Hopper, up to 4.3 GB so. Blocks of half the size are a
// tenth slower there.
AttentionGradients flash_backward_by_blocks(const at::Tensor& grad_output, const at::Tensor& query,
                                            const at::Tensor& key, const at::Tensor& value,
                                            const AttentionPart& merged, Mask mask,
                                            std::int64_t block = model::kRepeatableBlock);

}  // namespace penstock::nn::kernels::cuda
