// SPDX-License-Identifier: Apache-2.0
// Shared by our own kernels: element types, rounding, and loops over rows.
//
// Rows are independent, so the bits of a result do not depend on the number of threads. The order of sums
// over rows depends only on the sizes.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <c10/util/BFloat16.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "nn/kernels/element_dispatch.h"

namespace penstock::nn::kernels {

// Returns the bits of the nearest bf16, ties to even, in the upper half; the lower half is arbitrary. Not for
// NaN. Uses only integer operations: the processor's own conversion flushes denormals to zero, so bits would
// depend on the processor.
inline std::uint32_t number_to_upper_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return bits + 0x7FFFu + ((bits >> 16) & 1u);
}

// The same for any value. c10's conversion branches on NaN, which prevents vectorisation; this one selects.
inline std::uint32_t rounded_to_upper_half(float value) {
  return value == value ? number_to_upper_half(value) : 0x7FC00000u;
}

// Rounds to the nearest value of the narrower type, ties to even.
template <class Element, class Number>
inline Element narrowed(Number value) {
  return static_cast<Element>(value);
}
template <>
inline c10::BFloat16 narrowed<c10::BFloat16, float>(float value) {
  return {static_cast<std::uint16_t>(rounded_to_upper_half(value) >> 16), c10::BFloat16::from_bits()};
}

// The same for values other than NaN, but ties away from zero: half the work.
template <class Element>
inline Element narrowed_number(float value) {
  return static_cast<Element>(value);
}
template <>
inline c10::BFloat16 narrowed_number<c10::BFloat16>(float value) {
  return {static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) + 0x8000u) >> 16),
          c10::BFloat16::from_bits()};
}

// Minimum number of rows of `width` elements per task.
inline std::int64_t rows_per_task(std::int64_t width) {
  return std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, width));
}

template <class Work>
void for_rows(std::int64_t rows, std::int64_t width, Work&& work) {
  at::parallel_for(0, rows, rows_per_task(width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) work(row);
  });
}

}  // namespace penstock::nn::kernels
