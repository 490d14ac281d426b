// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/attention_work.h"

#include <algorithm>

#include "nn/kernels/first_keys.h"

namespace penstock::nn::kernels {
namespace {

// Query-key pairs of one head, over all sequences.
double seen_pairs(const at::Tensor& query, const at::Tensor& key, const Visible& visible) {
  const std::int64_t tokens = query.size(2), keys = key.size(2);
  const double all = static_cast<double>(query.size(0)) * static_cast<double>(tokens) *
                     static_cast<double>(keys) * (visible.mask == Mask::Causal ? 0.5 : 1.0);
  const FirstKeys first_keys(visible);
  if (first_keys.all()) return all;
  double unseen = 0;
  for (std::int64_t sequence = 0; sequence < query.size(0); ++sequence) {
    for (std::int64_t i = 0; i < tokens; ++i) {
      const std::int64_t before = visible.mask == Mask::Causal ? i : keys;
      unseen += static_cast<double>(std::clamp<std::int64_t>(first_keys.of(sequence, i), 0, before));
    }
  }
  return all - unseen;
}

}  // namespace

KernelTimer::Work attention_work(const at::Tensor& query, const at::Tensor& key, const Visible& visible,
                                 double products) {
  if (!is_profiled()) return {};
  const auto width = static_cast<double>(query.size(1) * query.size(3));
  return {.flops = 2 * products * width * seen_pairs(query, key, visible)};
}

}  // namespace penstock::nn::kernels
