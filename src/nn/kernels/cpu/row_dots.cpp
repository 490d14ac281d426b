// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/row_dots.h"

#include <cmath>
#include <limits>

#include "nn/kernels/cpu/element.h"
#include "nn/kernels/cpu/vectorised.h"
#include "nn/kernels/head_rows.h"

namespace penstock::nn::kernels {
namespace {

template <class Element>
PENSTOCK_VECTORISED Accumulator<Element> dot_row(const Element* a, const Element* b, std::int64_t d) {
  Accumulator<Element> sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < d; ++i) sum += Accumulator<Element>(a[i]) * Accumulator<Element>(b[i]);
  return sum;
}

// Scales by the greatest element first, so that squares neither overflow nor vanish. A row without a normal
// number counts as zeros: the reciprocal of its greatest element would be infinite.
template <class Element>
PENSTOCK_VECTORISED void scale_row(const Element* x, Accumulator<Element> dot, std::int64_t d, Element* out) {
  using Number = Accumulator<Element>;
  Number greatest = 0, squares = 0;
  for (std::int64_t i = 0; i < d; ++i) greatest = std::max(greatest, std::abs(Number(x[i])));
  const Number unit = greatest >= std::numeric_limits<Number>::min() ? Number(1) / greatest : Number(0);
  for (std::int64_t i = 0; i < d; ++i) squares += Number(x[i]) * unit * (Number(x[i]) * unit);
  const Number factor = squares > 0 ? dot * unit / squares : Number(0);
  for (std::int64_t i = 0; i < d; ++i) out[i] = narrowed<Element>(factor * (Number(x[i]) * unit));
}

}  // namespace

void dot_rows(const at::Tensor& a, const at::Tensor& b, at::Tensor& dots) {
  const HeadRows rows(a);
  const std::int64_t d = a.size(3);
  for_element_type(a.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    auto* out = dots.data_ptr<Accumulator<Element>>();
    for_rows(dots.numel(), d, [&](std::int64_t i) {
      const HeadRows::Row row = rows[i];
      out[rows.index(row)] = dot_row(a.const_data_ptr<Element>() + row.offset(a.strides()),
                                     b.const_data_ptr<Element>() + row.offset(b.strides()), d);
    });
  });
}

void rows_with_dots(const at::Tensor& x, const at::Tensor& dots, at::Tensor& result) {
  const std::int64_t d = x.size(3);
  for_element_type(x.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    const auto* dot = dots.const_data_ptr<Accumulator<Element>>();
    const Element* from = x.const_data_ptr<Element>();
    Element* out = result.data_ptr<Element>();
    for_rows(dots.numel(), d,
             [&](std::int64_t row) { scale_row(from + row * d, dot[row], d, out + row * d); });
  });
}

}  // namespace penstock::nn::kernels
