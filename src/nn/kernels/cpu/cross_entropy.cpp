// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cross_entropy.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "nn/kernels/cpu/element.h"
#include "nn/kernels/cpu/exponential.h"
#include "nn/kernels/cpu/vectorised.h"
#include "nn/kernels/cpu/work.h"

namespace penstock::nn::kernels {
namespace {

template <class Number>
struct RowSums {
  Number maximum;
  Number sum;  // of exp(logit − maximum)
};

// Leaves exp(logit − maximum) in `exponentials`.
template <class Element>
PENSTOCK_VECTORISED RowSums<Accumulator<Element>> exponentiate(const Element* logits, std::int64_t vocabulary,
                                                               Accumulator<Element>* exponentials) {
  using Number = Accumulator<Element>;
  Number maximum = Number(logits[0]), sum = 0;
#pragma omp simd reduction(max : maximum)
  for (std::int64_t i = 0; i < vocabulary; ++i) {
    maximum = Number(logits[i]) > maximum ? Number(logits[i]) : maximum;
  }
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < vocabulary; ++i) {
    exponentials[i] = exponential(Number(logits[i]) - maximum);
    sum += exponentials[i];
  }
  return {maximum, sum};
}

template <class Element>
PENSTOCK_VECTORISED void gradient_row(const Accumulator<Element>* exponentials, Accumulator<Element> sum,
                                      std::int64_t target, double scale, std::int64_t vocabulary,
                                      Element* gradient) {
  using Number = Accumulator<Element>;
  const Number factor = Number(scale) / sum;
  for (std::int64_t i = 0; i < vocabulary; ++i) gradient[i] = narrowed<Element>(exponentials[i] * factor);
  gradient[target] = narrowed<Element>(exponentials[target] * factor - Number(scale));
}

// The loss of each row, and with `gradient` (the logits' own memory) its gradient.
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
      const auto [maximum, sum] = exponentiate(x, vocabulary, exponentials.data());
      losses[row] = double(std::log(sum) + (maximum - Number(x[target[row]])));
      if (dx) gradient_row(exponentials.data(), sum, target[row], scale, vocabulary, dx);
    }
  });
}

double run(const at::Tensor& logits, const at::Tensor& targets, double scale, bool with_gradient) {
  const KernelTimer timer(Kernel::Loss, with_gradient ? memory_work(logits, logits) : memory_work(logits));
  PENSTOCK_CHECK(logits.is_contiguous() && targets.is_contiguous(), "kernels read contiguous rows");
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
  return std::accumulate(losses.begin(), losses.end(), 0.0);
}

}  // namespace

double cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  return run(logits, targets, 0.0, false);
}

double cross_entropy_with_gradient(at::Tensor& logits, const at::Tensor& targets, double gradient_scale) {
  return run(logits, targets, gradient_scale, true);
}

}  // namespace penstock::nn::kernels
