// SPDX-License-Identifier: Apache-2.0
// Softmax of one row of logits: the greatest logit, the sum of exponentials, and the gradient of the loss.
#pragma once

#include <cmath>
#include <limits>

#include "nn/kernels/cpu/fused_exponential.h"
#include "nn/kernels/cpu/pairs.h"
#include "nn/kernels/cpu/vectorised.h"

namespace penstock::nn::kernels {

template <class Number>
struct RowStatistics {
  Number greatest;  // -infinity without logits
  Number sum;       // sum of exp(logit − greatest); NaN if a logit is NaN or the greatest is infinite
};

// Returns the greatest logit, NaN if any is NaN. Compares bits: a vector holds twice as many 16-bit integers
// as f32, and an integer maximum takes one instruction; a float maximum, because NaN has no order, takes two
// and a mask. As signed integers positive floats keep their order, with NaN above infinity, and negative ones
// are below them. As unsigned integers negative floats are above all positive ones, in reverse order, with
// NaN above minus infinity.
template <class Signed, class Element>
inline Accumulator<Element> greatest_by_bits(const Element* logits, std::int64_t count) {
  static_assert(sizeof(Signed) == sizeof(Element));
  using Number = Accumulator<Element>;
  using Unsigned = std::make_unsigned_t<Signed>;
  constexpr Number kInfinity = std::numeric_limits<Number>::infinity();
  const auto infinity = std::bit_cast<Signed>(narrowed<Element>(kInfinity));
  const auto minus_infinity = std::bit_cast<Unsigned>(narrowed<Element>(-kInfinity));
  Signed greatest = std::numeric_limits<Signed>::min();
  Unsigned least = minus_infinity, most = 0;
#pragma omp simd reduction(max : greatest, most) reduction(min : least)
  for (std::int64_t i = 0; i < count; ++i) {
    Signed bits;
    std::memcpy(&bits, logits + i, sizeof(bits));
    greatest = std::max(greatest, bits);
    least = std::min(least, static_cast<Unsigned>(bits));
    most = std::max(most, static_cast<Unsigned>(bits));
  }
  if (greatest > infinity || most > minus_infinity) return std::numeric_limits<Number>::quiet_NaN();
  const bool all_negative = greatest < 0;
  return Number(std::bit_cast<Element>(all_negative ? static_cast<Signed>(least) : greatest));
}

template <class Element>
PENSTOCK_VECTORISED Accumulator<Element> greatest_of(const Element* logits, std::int64_t count) {
  if constexpr (sizeof(Element) == 2) return greatest_by_bits<std::int16_t>(logits, count);
  if constexpr (sizeof(Element) == 4) return greatest_by_bits<std::int32_t>(logits, count);
  if constexpr (sizeof(Element) == 8) return greatest_by_bits<std::int64_t>(logits, count);
}

// Logits per block; their exponentials are added while they are in the L1 cache.
inline constexpr std::int64_t kRowBlock = 1024;

// Calls work(begin, length) for the blocks of a row.
template <class Work>
inline void for_row_blocks(std::int64_t count, Work&& work) {
  for (std::int64_t begin = 0; begin < count; begin += kRowBlock)
    work(begin, std::min(kRowBlock, count - begin));
}

// Writes exp(logit − greatest) of a block to `kept`. For bf16, those of even places come before those of odd
// places.
template <class Element>
inline void exponentiate_block(const Element* logits, std::int64_t length, Accumulator<Element> greatest,
                               Accumulator<Element>* kept) {
  const std::int64_t pairs = kAnyNarrow<Element> ? length / 2 : 0;
#pragma omp simd
  for (std::int64_t k = 0; k < pairs; ++k) {
    const auto pair = pair_at(logits, k);
    kept[k] = exponential_below<Element>(pair.even, greatest);
    kept[pairs + k] = exponential_below<Element>(pair.odd, greatest);
  }
#pragma omp simd
  for (std::int64_t i = 2 * pairs; i < length; ++i)
    kept[i] = exponential_below<Element>(Accumulator<Element>(logits[i]), greatest);
}

// Returns the sum of exp(logit − greatest) and leaves the terms in `kept`, block by block. Prefetches the
// next row into the L2 cache: the search for its greatest logit is too short for the hardware prefetcher.
template <class Element>
PENSTOCK_VECTORISED Accumulator<Element> exponentiate(const Element* logits, std::int64_t count,
                                                      Accumulator<Element> greatest,
                                                      Accumulator<Element>* kept) {
  Sums<Accumulator<Element>> sums;
  for_row_blocks(count, [&](std::int64_t begin, std::int64_t length) {
    constexpr std::int64_t kLine = 64 / sizeof(Element);
    for (std::int64_t i = 0; i < length; i += kLine) __builtin_prefetch(logits + count + begin + i, 0, 2);
    exponentiate_block(logits + begin, length, greatest, kept + begin);
    sums.add(kept + begin, length);
  });
  return sums.total();
}

// Computes the gradient of a block of logits from its exponentials, as if none were the target. `factor` must
// not be NaN.
template <class Element>
inline void scale_block(const Accumulator<Element>* kept, Accumulator<Element> factor, std::int64_t length,
                        Element* gradient) {
  const std::int64_t pairs = kAnyNarrow<Element> ? length / 2 : 0;
  if constexpr (kAnyNarrow<Element>) {
#pragma omp simd
    for (std::int64_t k = 0; k < pairs; ++k) {
      const std::uint32_t even = number_to_upper_half(kept[k] * factor);
      const std::uint32_t odd = number_to_upper_half(kept[pairs + k] * factor);
      put_word(gradient, k, (even >> 16) | (odd & 0xFFFF0000u));
    }
  }
#pragma omp simd
  for (std::int64_t i = 2 * pairs; i < length; ++i) gradient[i] = narrowed<Element>(kept[i] * factor);
}

template <class Element>
PENSTOCK_VECTORISED void scale_exponentials(const Accumulator<Element>* kept, Accumulator<Element> factor,
                                            std::int64_t count, Element* gradient) {
  if (factor != factor) return static_cast<void>(std::fill_n(gradient, count, narrowed<Element>(factor)));
  for_row_blocks(count, [&](std::int64_t begin, std::int64_t length) {
    scale_block(kept + begin, factor, length, gradient + begin);
  });
}

template <class Element>
inline RowStatistics<Accumulator<Element>> row_statistics(const Element* logits, std::int64_t count,
                                                          Accumulator<Element>* kept) {
  using Number = Accumulator<Element>;
  const Number greatest = greatest_of(logits, count);
  if (count == 0) return {greatest, Number(0)};
  const Number sum = exponentiate(logits, count, greatest, kept);
  return {greatest, std::isfinite(greatest) ? sum : std::numeric_limits<Number>::quiet_NaN()};
}

// Returns the gradient of the target's logit.
template <class Element>
inline Element target_gradient(Accumulator<Element> logit, Accumulator<Element> greatest,
                               Accumulator<Element> factor, double scale) {
  using Number = Accumulator<Element>;
  return narrowed<Element>(exponential_below<Element>(logit, greatest) * factor - Number(scale));
}

}  // namespace penstock::nn::kernels
