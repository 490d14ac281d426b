// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/sharded_softmax.h"

#include <ATen/ops/empty.h>

#include <cmath>
#include <limits>

#include "nn/kernels/cpu/exponential.h"
#include "nn/kernels/cpu/softmax_row.h"

namespace penstock::nn::kernels {
namespace {

// Replaces each logit by exp(logit − greatest)·factor.
template <class Element>
PENSTOCK_VECTORISED void scaled_exponentials(Element* logits, std::int64_t count,
                                             Accumulator<Element> greatest, Accumulator<Element> factor) {
  using Number = Accumulator<Element>;
  const auto formula = [greatest, factor](Number x) {
    return exponential_below<Element>(x, greatest) * factor;
  };
  map(count, Inputs(static_cast<const Element*>(logits)), Output(logits, formula));
}

template <class Element>
void gradient_row(Element* logits, std::int64_t target, const mesh::Shard& shard,
                  RowStatistics<Accumulator<Element>> softmax, double scale) {
  using Number = Accumulator<Element>;
  const Number factor = Number(scale) / softmax.sum;
  const bool here = shard.holds(target);
  const Number at_target = here ? Number(logits[target - shard.begin]) : softmax.greatest;
  scaled_exponentials(logits, shard.count, softmax.greatest, factor);
  std::fill(logits + shard.count, logits + shard.held, Element(0));
  if (!here) return;
  logits[target - shard.begin] = target_gradient<Element>(at_target, softmax.greatest, factor, scale);
}

// Adds the parts in rank order.
template <class Number>
TileSoftmax combine(const at::Tensor& statistics, const at::Tensor& targets, std::int64_t held) {
  const std::int64_t parts = statistics.size(0), tokens = targets.numel();
  const std::int64_t* target = targets.const_data_ptr<std::int64_t>();
  const Number* all = statistics.const_data_ptr<Number>();
  const at::Tensor combined = at::empty({2, tokens}, statistics.options());
  Number* scale = combined.data_ptr<Number>();
  double loss = 0;
  const auto of = [&](std::int64_t part, int which, std::int64_t row) {
    return all[(part * 3 + which) * tokens + row];
  };
  for (std::int64_t row = 0; row < tokens; ++row) {
    Number greatest = of(0, 0, row), sum = 0;
    for (std::int64_t part = 1; part < parts; ++part) greatest = std::max(greatest, of(part, 0, row));
    for (std::int64_t part = 0; part < parts; ++part) {
      sum += of(part, 1, row) * exponential(of(part, 0, row) - greatest);
    }
    scale[row] = greatest;
    scale[tokens + row] = sum;
    if (target[row] < 0) continue;
    PENSTOCK_CHECK(target[row] < parts * held, "targets lie inside the vocabulary or are -1");
    loss += double(std::log(sum) + (greatest - of(target[row] / held, 2, row)));
  }
  return {combined, LossSum(loss)};
}

}  // namespace

void statistics_of_rows(const at::Tensor& logits, const at::Tensor& targets, const mesh::Shard& shard,
                        at::Tensor& statistics) {
  const std::int64_t tokens = targets.numel();
  const std::int64_t* target = targets.const_data_ptr<std::int64_t>();
  for_element_type(logits.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    using Number = Accumulator<Element>;
    const Element* x = logits.const_data_ptr<Element>();
    Number* out = statistics.data_ptr<Number>();
    at::parallel_for(0, tokens, rows_per_task(shard.held), [&](std::int64_t begin, std::int64_t end) {
      std::vector<Number> exponentials(static_cast<std::size_t>(shard.count));
      for (std::int64_t row = begin; row < end; ++row) {
        const Element* logit = x + row * shard.held;
        const auto [greatest, sum] = row_statistics(logit, shard.count, exponentials.data());
        out[row] = greatest;
        out[tokens + row] = sum;
        out[2 * tokens + row] =
            shard.holds(target[row]) ? Number(logit[target[row] - shard.begin]) : Number(0);
      }
    });
  });
}

TileSoftmax combine_statistics(const at::Tensor& statistics, const at::Tensor& targets, std::int64_t held) {
  const bool wide = statistics.scalar_type() == at::kDouble;
  return wide ? combine<double>(statistics, targets, held) : combine<float>(statistics, targets, held);
}

void gradient_of_rows(at::Tensor& logits, const at::Tensor& targets, const mesh::Shard& shard,
                      const at::Tensor& scale, double gradient_scale) {
  const std::int64_t tokens = targets.numel();
  const std::int64_t* target = targets.const_data_ptr<std::int64_t>();
  for_element_type(logits.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    const auto* softmax = scale.const_data_ptr<Accumulator<Element>>();
    Element* x = logits.data_ptr<Element>();
    for_rows(tokens, shard.held, [&](std::int64_t row) {
      Element* logit = x + row * shard.held;
      if (target[row] < 0) {
        std::fill_n(logit, shard.held, Element(0));
      } else {
        gradient_row(logit, target[row], shard, {softmax[row], softmax[tokens + row]}, gradient_scale);
      }
    });
  });
}

}  // namespace penstock::nn::kernels
