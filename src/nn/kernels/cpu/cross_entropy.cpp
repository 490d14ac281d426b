// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cross_entropy.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "nn/kernels/cpu/softmax_row.h"

namespace penstock::nn::kernels {
namespace {

// Computes each row's loss and, if `gradient` is not null (the logits' own memory), its gradient.
template <class Element>
void all_rows(const Element* logits, const at::Tensor& targets, std::int64_t vocabulary, double scale,
              Element* gradient, double* losses) {
  using Number = Accumulator<Element>;
  const std::int64_t* target = targets.const_data_ptr<std::int64_t>();
  at::parallel_for(0, targets.numel(), rows_per_task(vocabulary), [&](std::int64_t begin, std::int64_t end) {
    std::vector<Number> exponentials(static_cast<std::size_t>(vocabulary));
    for (std::int64_t row = begin; row < end; ++row) {
      const Element* x = logits + row * vocabulary;
      Element* dx = gradient ? gradient + row * vocabulary : nullptr;
      losses[row] = 0;
      if (target[row] < 0) {
        if (dx) std::fill_n(dx, vocabulary, Element(0));
        continue;
      }
      const auto [greatest, sum] = row_statistics(x, vocabulary, exponentials.data());
      const Number logit = Number(x[target[row]]);
      losses[row] = double(std::log(sum) + (greatest - logit));
      if (!dx) continue;
      const Number factor = Number(scale) / sum;
      scale_exponentials(exponentials.data(), factor, vocabulary, dx);
      dx[target[row]] = target_gradient<Element>(logit, greatest, factor, scale);
    }
  });
}

}  // namespace

LossSum loss_of_rows(const at::Tensor& logits, const at::Tensor& targets, double scale, bool with_gradient) {
  const std::int64_t vocabulary = logits.size(1), count = targets.numel();
  const std::int64_t* ids = targets.const_data_ptr<std::int64_t>();
  PENSTOCK_CHECK(std::all_of(ids, ids + count, [&](std::int64_t id) { return id >= -1 && id < vocabulary; }),
                 "targets lie inside the vocabulary or are -1");
  std::vector<double> losses(static_cast<std::size_t>(count));
  for_element_type(logits.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    Element* gradient = with_gradient ? logits.data_ptr<Element>() : nullptr;
    all_rows<Element>(logits.const_data_ptr<Element>(), targets, vocabulary, scale, gradient, losses.data());
  });
  return LossSum(std::accumulate(losses.begin(), losses.end(), 0.0));
}

}  // namespace penstock::nn::kernels
