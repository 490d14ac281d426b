// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/merge.h"

#include <cmath>
#include <limits>

#include "nn/kernels/cpu/element.h"
#include "nn/kernels/cpu/vectorised.h"
#include "nn/kernels/head_rows.h"

namespace penstock::nn::kernels {
namespace {

template <class Number, class Element>
PENSTOCK_VECTORISED void weigh(Number keep, Number take, const Element* part, std::int64_t d, Number* total) {
#pragma omp simd
  for (std::int64_t i = 0; i < d; ++i) total[i] = keep * total[i] + take * Number(part[i]);
}

template <class Number, class Element>
void merge_row(Number* total, Number& total_lse, const Element* part, Number part_lse, std::int64_t d) {
  if (part_lse == -std::numeric_limits<Number>::infinity()) return;
  const Number greater = std::max(total_lse, part_lse), less = std::min(total_lse, part_lse);
  const Number ratio = std::exp(less - greater);  // lesser sum / greater sum
  const Number of_greater = Number(1) / (Number(1) + ratio), of_less = ratio * of_greater;
  const bool kept_more = total_lse >= part_lse;
  weigh(kept_more ? of_greater : of_less, kept_more ? of_less : of_greater, part, d, total);
  total_lse = greater + std::log1p(ratio);
}

template <class Element>
void merge_as(AttentionPart& total, std::int64_t first, const AttentionPart& part) {
  using Number = Accumulator<Element>;
  const HeadRows rows(part.output);
  Number* sum = total.output.data_ptr<Number>() + first * total.output.stride(2);
  Number* sum_lse = total.log_sum_exp.data_ptr<Number>() + first;
  const Element* from = part.output.const_data_ptr<Element>();
  const Number* from_lse = part.log_sum_exp.const_data_ptr<Number>();
  const std::int64_t d = total.output.size(3), of_total = total.output.size(2);
  for_rows(part.log_sum_exp.numel(), d, [&](std::int64_t i) {
    const HeadRows::Row row = rows[i];
    merge_row(sum + row.offset(total.output.strides()), sum_lse[rows.index(row, of_total)],
              from + row.offset(part.output.strides()), from_lse[rows.index(row)], d);
  });
}

}  // namespace

void merge_rows(AttentionPart& total, std::int64_t first, const AttentionPart& part) {
  for_element_type(part.output.scalar_type(),
                   [&](auto element) { merge_as<decltype(element)>(total, first, part); });
}

}  // namespace penstock::nn::kernels
