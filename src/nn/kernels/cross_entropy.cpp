// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cross_entropy.h"

#include <ATen/ops/cat.h>

#include <numeric>

#include "backend/device.h"

namespace penstock::nn::kernels {

LossSum& LossSum::operator+=(const LossSum& other) {
  sum_ += other.sum_;
  pending_.insert(pending_.end(), other.pending_.begin(), other.pending_.end());
  return *this;
}

double LossSum::value() const {
  if (pending_.empty()) return sum_;
  const at::Tensor all = backend::to_host(at::cat(pending_));
  const double* loss = all.const_data_ptr<double>();
  double sum = sum_;
  for (const at::Tensor& losses : pending_) {
    sum += std::accumulate(loss, loss + losses.numel(), 0.0);
    loss += losses.numel();
  }
  return sum;
}

}  // namespace penstock::nn::kernels
