// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cross_entropy.h"

#include <ATen/ops/cat.h>

#include <numeric>

#include "backend/device.h"
#include "nn/kernels/work.h"

namespace penstock::nn::kernels {

namespace {

LossSum timed_loss(const at::Tensor& logits, const at::Tensor& targets, double scale, bool with_gradient) {
  const KernelTimer timer(Kernel::Loss, with_gradient ? memory_work(logits, logits) : memory_work(logits));
  PENSTOCK_CHECK(logits.is_contiguous() && targets.is_contiguous(), "kernels read contiguous rows");
  return loss_of_rows(logits, targets, scale, with_gradient);
}

}  // namespace

LossSum cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  return timed_loss(logits, targets, 0.0, false);
}

LossSum cross_entropy_with_gradient(at::Tensor& logits, const at::Tensor& targets, double gradient_scale) {
  return timed_loss(logits, targets, gradient_scale, true);
}

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
