// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/rms_norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "nn/kernels/cpu/element.h"
#include "nn/kernels/cpu/vectorised.h"
#include "nn/kernels/cpu/work.h"

namespace penstock::nn::kernels {
namespace {

// Rows per partial sum of the weight gradient; a constant, so that bits do not depend on the threads.
constexpr std::int64_t kBlockRows = 32;

template <class Element>
Accumulator<Element> sum_of_squares(const Element* x, std::int64_t h) {
  Accumulator<Element> sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < h; ++i) sum += Accumulator<Element>(x[i]) * Accumulator<Element>(x[i]);
  return sum;
}

template <class Element>
PENSTOCK_VECTORISED void norm_row(const Element* x, const Element* weight, std::int64_t h, double epsilon,
                                  Element* output, Accumulator<Element>* scale) {
  using Number = Accumulator<Element>;
  const Number factor = Number(1) / std::sqrt(sum_of_squares(x, h) / Number(h) + Number(epsilon));
  for (std::int64_t i = 0; i < h; ++i) {
    output[i] = narrowed<Element>(Number(weight[i]) * (Number(x[i]) * factor));
  }
  *scale = factor;
}

template <class Element>
PENSTOCK_VECTORISED void add_row(const Element* a, const Element* b, std::int64_t h, Element* sum) {
  using Number = Accumulator<Element>;
  for (std::int64_t i = 0; i < h; ++i) sum[i] = narrowed<Element>(Number(a[i]) + Number(b[i]));
}

// dx = r·(w·dy) − x·r³/h·Σ(w·dy·x) + residual; the weight's part r·x·dy goes to weight_sums.
template <class Element>
PENSTOCK_VECTORISED void norm_row_backward(const Element* dy, const Element* x, const Element* weight,
                                           Accumulator<Element> r, const Element* residual, std::int64_t h,
                                           Element* dx, Accumulator<Element>* weight_sums) {
  using Number = Accumulator<Element>;
  Number dot = 0;
#pragma omp simd reduction(+ : dot)
  for (std::int64_t i = 0; i < h; ++i) {
    const Number product = Number(dy[i]) * Number(x[i]);
    dot += Number(weight[i]) * product;
    weight_sums[i] += r * product;
  }
  const Number pull = dot * r * r * r / Number(h);
  for (std::int64_t i = 0; i < h; ++i) {
    const Number gradient = r * Number(weight[i]) * Number(dy[i]) - pull * Number(x[i]);
    dx[i] = narrowed<Element>(residual ? gradient + Number(residual[i]) : gradient);
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

Normed rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  at::Tensor sum;
  return rms_norm_of_sum(x, {}, weight, epsilon, sum);
}

Normed rms_norm_of_sum(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                       double epsilon, at::Tensor& sum) {
  const KernelTimer timer(Kernel::Norm, memory_work(x, branch, branch, x));
  PENSTOCK_CHECK(x.dim() == 2 && x.is_contiguous(), "kernels read contiguous rows");
  PENSTOCK_CHECK(!branch.defined() || (branch.is_contiguous() && branch.sizes() == x.sizes()),
                 "kernels read contiguous rows");
  if (branch.defined()) sum = at::empty_like(x);
  const std::int64_t rows = x.size(0), h = x.size(1);
  Normed result{at::empty_like(x), at::empty({rows}, x.options().dtype(accumulator_type(x.scalar_type())))};
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
  return result;
}

at::Tensor rms_norm_backward(const at::Tensor& grad_output, const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& scale, const at::Tensor& residual, at::Tensor& grad_weight) {
  const KernelTimer timer(Kernel::NormBackward, memory_work(grad_output, x, residual, x));
  PENSTOCK_CHECK(grad_output.is_contiguous() && x.is_contiguous(), "kernels read contiguous rows");
  PENSTOCK_CHECK(!residual.defined() || residual.is_contiguous(), "kernels read contiguous rows");
  const std::int64_t rows = x.size(0), h = x.size(1);
  const std::int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  at::Tensor grad_input = at::empty_like(x);
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
  return grad_input;
}

}  // namespace penstock::nn::kernels
