// SPDX-License-Identifier: Apache-2.0
// Softmax and negative log-likelihood of one tile of tokens.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace penstock::nn::kernels {

// A sum of tokens' losses, formed when it is asked for: on a card computation goes on meanwhile.
class LossSum {
 public:
  LossSum() = default;
  explicit LossSum(double sum) : sum_(sum) {}
  // losses [N] f64 of the compute device, to be added in their order.
  explicit LossSum(at::Tensor losses) : pending_{std::move(losses)} {}

  LossSum& operator+=(const LossSum& other);

  // Waits until the losses are computed.
  double value() const;

 private:
  double sum_ = 0;
  std::vector<at::Tensor> pending_;  // addends, each a sum of its own
};

// logits [N, V] contiguous; targets [N] int64 contiguous, -1 for none. Returns the sum over the targets of
// -log p(target), in f64 and in token order.
LossSum cross_entropy(const at::Tensor& logits, const at::Tensor& targets);

// The same, and overwrites the logits with their gradient times gradient_scale; rows without a target become
// zero.
LossSum cross_entropy_with_gradient(at::Tensor& logits, const at::Tensor& targets, double gradient_scale);

}  // namespace penstock::nn::kernels
