// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/sum_parts.h"

#include <array>
#include <vector>

#include "nn/kernels/cpu/element.h"
#include "nn/kernels/cpu/vectorised.h"

namespace penstock::nn::kernels {
namespace {

constexpr std::int64_t kBlock = 256;  // elements added at a time; their parts stay in the L1 cache

template <class Number>
using Block = std::array<Number, kBlock>;

template <class Element, class Number>
PENSTOCK_VECTORISED void widen(const Element* from, std::int64_t count, Number* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = Number(from[i]);
}

template <class Number>
PENSTOCK_VECTORISED void add(const Number* from, std::int64_t count, Number* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

template <class Number, class Result>
PENSTOCK_VECTORISED void round_to(const Number* from, std::int64_t count, Result* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = narrowed<Result>(from[i]);
}

template <class Element, class Result>
void sum_all(std::span<const at::Tensor> parts, at::Tensor& result) {
  using Number = Accumulator<Element>;
  std::vector<const Element*> from;
  for (const at::Tensor& part : parts) from.push_back(part.const_data_ptr<Element>());
  Result* to = result.data_ptr<Result>();
  const std::int64_t count = result.numel(), blocks = (count + kBlock - 1) / kBlock;
  at::parallel_for(0, blocks, rows_per_task(kBlock), [&](std::int64_t begin, std::int64_t end) {
    std::vector<Block<Number>> sums(from.size());
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t first = block * kBlock, length = std::min(kBlock, count - first);
      for (std::size_t i = 0; i < from.size(); ++i) widen(from[i] + first, length, sums[i].data());
      for (std::size_t apart = 1; apart < sums.size(); apart *= 2) {
        for (std::size_t i = 0; i + apart < sums.size(); i += 2 * apart)
          add(sums[i + apart].data(), length, sums[i].data());
      }
      round_to(sums[0].data(), length, to + first);
    }
  });
}

template <class Element>
PENSTOCK_VECTORISED void add_row(const Element* row, std::int64_t width, Accumulator<Element>* sum) {
  for (std::int64_t i = 0; i < width; ++i) sum[i] += Accumulator<Element>(row[i]);
}

}  // namespace

void add_placed_rows(const at::Tensor& rows, const at::Tensor& places, const at::Tensor& beside,
                     at::Tensor& result) {
  const std::int64_t tokens = places.size(0), k = places.size(1), h = rows.size(1);
  const std::int64_t* place = places.const_data_ptr<std::int64_t>();
  for_element_type(rows.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    using Sum = Accumulator<Element>;
    const Element* from = rows.const_data_ptr<Element>();
    const Sum* first = beside.defined() ? beside.const_data_ptr<Sum>() : nullptr;
    Element* to = result.data_ptr<Element>();
    at::parallel_for(0, tokens, rows_per_task(h * k), [&](std::int64_t begin, std::int64_t end) {
      std::vector<Sum> sum(static_cast<std::size_t>(h));
      for (std::int64_t token = begin; token < end; ++token) {
        if (first) {
          std::copy_n(first + token * h, h, sum.begin());
        } else {
          std::ranges::fill(sum, Sum(0));
        }
        for (std::int64_t slot = 0; slot < k; ++slot)
          add_row(from + place[token * k + slot] * h, h, sum.data());
        round_to(sum.data(), h, to + token * h);
      }
    });
  });
}

void add_parts(std::span<const at::Tensor> parts, at::Tensor& result) {
  for_sum_types(parts.front().scalar_type(), result.scalar_type(),
                [&](auto part, auto sum) { sum_all<decltype(part), decltype(sum)>(parts, result); });
}

}  // namespace penstock::nn::kernels
