// SPDX-License-Identifier: Apache-2.0
// Softmax and negative log-likelihood for one tile of tokens.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace penstock::nn::kernels {

// Sum of token losses. value() adds them up on demand, so a GPU keeps computing until then.
class LossSum {
 public:
  LossSum() = default;
  explicit LossSum(double sum) : sum_(sum) {}
  // losses [N] f64 on the compute device; they are added in order.
  explicit LossSum(at::Tensor losses) : pending_{std::move(losses)} {}

  LossSum& operator+=(const LossSum& other);

  // Waits until the losses are computed.
  double value() const;

 private:
  double sum_ = 0;
  std::vector<at::Tensor> pending_;  // each is summed by itself, then added
};

// logits [N, V] contiguous; targets [N] int64 contiguous, -1 for tokens without a target. Returns the sum of
// -log p(target) over the targets, in f64 and in token order.
LossSum cross_entropy(const at::Tensor& logits, const at::Tensor& targets);

// The same, and overwrites the logits with their gradient times gradient_scale; rows without a target become
// zero.
LossSum cross_entropy_with_gradient(at::Tensor& logits, const at::Tensor& targets, double gradient_scale);

// Implemented in cpu/ and cuda/: both of them for checked arguments; without a gradient the logits are only
// read.
LossSum loss_of_rows(const at::Tensor& logits, const at::Tensor& targets, double scale, bool with_gradient);

}  // namespace penstock::nn::kernels
