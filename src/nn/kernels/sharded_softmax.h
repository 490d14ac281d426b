// SPDX-License-Identifier: Apache-2.0
// Softmax and negative log-likelihood of a tile of tokens whose logits are spread over p devices by columns.
// Each device reduces its columns to three numbers a token; all devices gather them, in the order of the
// ranks, and know the loss and the scale of every token's softmax.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace penstock::nn::kernels {

// Which columns of the whole vocabulary a device has: `rows` of them in memory, the first `own` of which are
// tokens `first` to `first + own - 1`; the others are padding.
struct VocabularyRange {
  std::int64_t first = 0;
  std::int64_t own = 0;
  std::int64_t rows = 0;

  bool holds(std::int64_t token) const { return token >= first && token < first + own; }
};

// Equal shards of a vocabulary padded to a multiple of `parts`.
VocabularyRange vocabulary_range(std::int64_t vocabulary, int parts, int rank);

// logits [T, rows] contiguous, targets [T] int64 (-1: none) → [3, T] in the accumulator type: the greatest
// logit of the own columns, the sum of exp(logit - greatest), and the target's logit (0 when it is not here).
at::Tensor shard_statistics(const at::Tensor& logits, const at::Tensor& targets,
                            const VocabularyRange& range);

struct TileSoftmax {
  at::Tensor scale;            // [2, T]: the greatest logit of all, and the sum of exp(logit - greatest)
  std::vector<double> losses;  // [T], -log p(target); 0 without a target
};

// statistics [p, 3, T]; `rows` of a shard tells whose a target is.
TileSoftmax combine_statistics(const at::Tensor& statistics, const at::Tensor& targets, std::int64_t rows);

// Overwrites the logits with their gradient times gradient_scale; padding and rows without a target become
// zero.
void shard_gradient(at::Tensor& logits, const at::Tensor& targets, const VocabularyRange& range,
                    const at::Tensor& scale, double gradient_scale);

}  // namespace penstock::nn::kernels
