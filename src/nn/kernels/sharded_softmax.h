// SPDX-License-Identifier: Apache-2.0
// Softmax and negative log-likelihood for a tile of tokens, with logits sharded by columns over p devices.
// Each device reduces its columns to three numbers per token. After an all-gather in rank order, each device
// computes the loss and the softmax scale of every token.
#pragma once

#include <ATen/core/Tensor.h>

#include "mesh/shard.h"
#include "nn/kernels/cross_entropy.h"

namespace penstock::nn::kernels {

// `shard`: the device's columns of the whole vocabulary. logits [T, held] contiguous, targets [T] int64 (-1:
// no target) → [3, T] in the accumulator type: the greatest logit of the device's columns, the sum of
// exp(logit - greatest), and the target's logit (0 if another device has it).
at::Tensor shard_statistics(const at::Tensor& logits, const at::Tensor& targets, const mesh::Shard& shard);

struct TileSoftmax {
  at::Tensor scale;  // [2, T]: greatest logit over all devices, sum of exp(logit - greatest)
  LossSum loss;      // sum of -log p(target) over the targets, in token order
};

// statistics [p, 3, T]. Every shard holds `held` columns; target k is in shard k / held.
TileSoftmax combine_statistics(const at::Tensor& statistics, const at::Tensor& targets, std::int64_t held);

// Overwrites the logits with their gradient times gradient_scale; padding and rows without a target become
// zero.
void shard_gradient(at::Tensor& logits, const at::Tensor& targets, const mesh::Shard& shard,
                    const at::Tensor& scale, double gradient_scale);

// Implemented in cpu/ and cuda/, like combine_statistics(): the same into allocated results.
void statistics_of_rows(const at::Tensor& logits, const at::Tensor& targets, const mesh::Shard& shard,
                        at::Tensor& statistics);
void gradient_of_rows(at::Tensor& logits, const at::Tensor& targets, const mesh::Shard& shard,
                      const at::Tensor& scale, double gradient_scale);

}  // namespace penstock::nn::kernels
