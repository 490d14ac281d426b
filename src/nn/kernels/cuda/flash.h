// SPDX-License-Identifier: Apache-2.0
// Fused bf16 attention of a library on a GPU; plain f32 attention on a host, for tests.
#pragma once

#include <ATen/Context.h>

#include "model/joined_keys.h"
#include "nn/kernels/attention.h"

namespace penstock::nn::kernels::cuda {

// Whether kernels must repeat their bits (backend/device.h).
inline bool must_repeat() { return at::globalContext().deterministicAlgorithms(); }

// attend() and attend_backward() for whole sequences (no document starts) in bf16, in one library call.
// Results are bf16, the log-sum-exp f32. A causal call must have as many queries as keys: libraries differ
// on other shapes. The backward repeats its bits if must_repeat().
AttentionPart flash(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, Mask mask);
AttentionGradients flash_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                  const at::Tensor& key, const at::Tensor& value, const AttentionPart& merged,
                                  Mask mask);

// The same in calls of at most `block` queries and keys, or of fewer queries and more earlier keys
// (model/joined_keys.h). Adds their gradients in f32 in a fixed order. The blocks bound the memory of cuDNN's
// repeatable backward, which takes 2·heads·queries·keys bytes on Hopper, to 4.3 GB. Blocks of half the size
// are a tenth slower there.
AttentionGradients flash_backward_by_blocks(const at::Tensor& grad_output, const at::Tensor& query,
                                            const at::Tensor& key, const at::Tensor& value,
                                            const AttentionPart& merged, Mask mask,
                                            std::int64_t block = model::kRepeatableBlock);

}  // namespace penstock::nn::kernels::cuda
