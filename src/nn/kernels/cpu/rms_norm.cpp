// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/rms_norm.h"

#include <ATen/ops/zeros.h>

#include <cmath>

#include "nn/kernels/cpu/pairs.h"
#include "nn/kernels/cpu/vectorised.h"

namespace penstock::nn::kernels {
namespace {

// Rows per partial sum of the weight gradient; a constant, so that bits do not depend on the threads.
constexpr std::int64_t kBlockRows = 32;

template <class Element>
PENSTOCK_VECTORISED void norm_row(const Element* x, const Element* weight, std::int64_t h, double epsilon,
                                  Element* output, Accumulator<Element>* scale) {
  using Number = Accumulator<Element>;
  const Number squares = sum_of<Number>(
      h, [](Number v) { return v * v; }, x);
  const Number factor = Number(1) / std::sqrt(squares / Number(h) + Number(epsilon));
  map(h, Inputs(x, weight), Output(output, [factor](Number v, Number w) { return w * (v * factor); }));
  *scale = factor;
}

template <class Element>
PENSTOCK_VECTORISED void add_row(const Element* a, const Element* b, std::int64_t h, Element* sum) {
  using Number = Accumulator<Element>;
  map(h, Inputs(a, b), Output(sum, [](Number first, Number second) { return first + second; }));
}

// sums += r·x·dy.
template <class Element>
inline void add_products(const Element* dy, const Element* x, Accumulator<Element> r, std::int64_t h,
                         Accumulator<Element>* sums) {
  using Number = Accumulator<Element>;
  const std::int64_t pairs = kAnyNarrow<Element> ? h / 2 : 0;
#pragma omp simd
  for (std::int64_t k = 0; k < pairs; ++k) {
    const auto gradient = pair_at(dy, k), value = pair_at(x, k);
    sums[2 * k] += r * (gradient.even * value.even);
    sums[2 * k + 1] += r * (gradient.odd * value.odd);
  }
#pragma omp simd
  for (std::int64_t i = 2 * pairs; i < h; ++i) sums[i] += r * (Number(dy[i]) * Number(x[i]));
}

// dx = r·(w·dy) − x·r³/h·Σ(w·dy·x) + residual; weight_sums += r·x·dy, the weight's gradient of the row.
template <class Element>
PENSTOCK_VECTORISED void norm_row_backward(const Element* dy, const Element* x, const Element* weight,
                                           Accumulator<Element> r, const Element* residual, std::int64_t h,
                                           Element* dx, Accumulator<Element>* weight_sums) {
  using Number = Accumulator<Element>;
  add_products(dy, x, r, h, weight_sums);
  const Number dot = sum_of<Number>(
      h, [](Number d, Number v, Number w) { return w * (d * v); }, dy, x, weight);
  const Number pull = dot * r * r * r / Number(h);
  const auto own = [r, pull](Number d, Number v, Number w) { return r * w * d - pull * v; };
  if (residual) {
    const auto with_residual = [own](Number d, Number v, Number w, Number rest) {
      return own(d, v, w) + rest;
    };
    map(h, Inputs(dy, x, weight, residual), Output(dx, with_residual));
  } else {
    map(h, Inputs(dy, x, weight), Output(dx, own));
  }
}

template <class Number>
void add_blocks(const Number* blocks, std::int64_t count, std::int64_t h, Number* sums) {
  at::parallel_for(0, h, rows_per_task(count), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = 0; block < count; ++block) {
      for (std::int64_t i = begin; i < end; ++i) sums[i] += blocks[block * h + i];
    }
  });
}

}  // namespace

void norm_rows(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight, double epsilon,
               at::Tensor& sum, Normed& result) {
  const std::int64_t rows = x.size(0), h = x.size(1);
  for_element_type(x.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    const Element* in = x.const_data_ptr<Element>();
    const Element* added = branch.defined() ? branch.const_data_ptr<Element>() : nullptr;
    Element* total = branch.defined() ? sum.data_ptr<Element>() : nullptr;
    const Element* w = weight.const_data_ptr<Element>();
    Element* out = result.output.data_ptr<Element>();
    auto* scale = result.scale.data_ptr<Accumulator<Element>>();
    for_rows(rows, h, [&](std::int64_t row) {
      if (added) add_row(in + row * h, added + row * h, h, total + row * h);
      norm_row((added ? total : in) + row * h, w, h, epsilon, out + row * h, scale + row);
    });
  });
}

void norm_rows_backward(const at::Tensor& grad_output, const at::Tensor& x, const at::Tensor& weight,
                        const at::Tensor& scale, const at::Tensor& residual, at::Tensor& grad_input,
                        at::Tensor& grad_weight) {
  const std::int64_t rows = x.size(0), h = x.size(1);
  const std::int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  at::Tensor weight_sums = at::zeros({blocks, h}, grad_weight.options());
  for_element_type(x.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    using Number = Accumulator<Element>;
    const Element* dy = grad_output.const_data_ptr<Element>();
    const Element* in = x.const_data_ptr<Element>();
    const Element* w = weight.const_data_ptr<Element>();
    const Element* rest = residual.defined() ? residual.const_data_ptr<Element>() : nullptr;
    const Number* r = scale.const_data_ptr<Number>();
    Element* dx = grad_input.data_ptr<Element>();
    Number* sums = weight_sums.data_ptr<Number>();
    for_rows(blocks, kBlockRows * h, [&](std::int64_t block) {
      for (std::int64_t row = block * kBlockRows; row < std::min(rows, (block + 1) * kBlockRows); ++row) {
        norm_row_backward(dy + row * h, in + row * h, w, r[row], rest ? rest + row * h : nullptr, h,
                          dx + row * h, sums + block * h);
      }
    });
    add_blocks(sums, blocks, h, grad_weight.data_ptr<Number>());
  });
}

}  // namespace penstock::nn::kernels
