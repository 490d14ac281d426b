// SPDX-License-Identifier: Apache-2.0
// Exponentials as accurate as the element type needs, with fused multiply-adds. Integer operations clamp the
// argument: a clamp with float comparisons becomes branches, which the vectoriser turns into masks on every
// later operation.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "nn/kernels/cpu/element.h"

namespace penstock::nn::kernels {

// Clamps x to [low, high], low < 0 < high, by comparing bits. As signed integers, positive floats keep their
// order and negative floats are below them; as unsigned integers, negative floats of greater magnitude are
// greater. NaN becomes one of the limits.
inline float clamped(float x, float low, float high) {
  // By value: std::min's references are resolved too late, and the optimiser splits the loop at the limits.
  const auto lesser = [](auto a, auto b) { return a < b ? a : b; };
  const auto below = lesser(std::bit_cast<std::int32_t>(x), std::bit_cast<std::int32_t>(high));
  return std::bit_cast<float>(lesser(static_cast<std::uint32_t>(below), std::bit_cast<std::uint32_t>(low)));
}

// e^x. For f32 and bf16, x is clamped to [-87, 87], and NaN becomes one of the limits.
template <class Element>
inline Accumulator<Element> fast_exponential(Accumulator<Element> x) {
  return std::exp(x);
}

// Accurate to 2 units in the last place.
template <>
inline float fast_exponential<float>(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  const float inside = clamped(x, -87.0f, 87.0f);
  const float shifted = __builtin_fmaf(inside, 1.44269504088896341f, kRound);
  const float n = shifted - kRound;
  // ln 2 in two parts (Cody and Waite)
  const float r = __builtin_fmaf(n, 2.12194440e-4f, __builtin_fmaf(n, -0.693359375f, inside));
  float p = 1.9875691500e-4f;  // Cephes, expf
  p = __builtin_fmaf(p, r, 1.3981999507e-3f);
  p = __builtin_fmaf(p, r, 8.3334519073e-3f);
  p = __builtin_fmaf(p, r, 4.1665795894e-2f);
  p = __builtin_fmaf(p, r, 1.6666665459e-1f);
  p = __builtin_fmaf(p, r, 5.0000001201e-1f);
  p = __builtin_fmaf(p * r, r, r) + 1.0f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) +
                              (std::bit_cast<std::uint32_t>(shifted) << 23));
}

// 2^x for -125.5 ≤ x ≤ 125.5. The error, 4e-6, is a five-hundredth of the error of rounding the result to
// bf16.
inline float short_power_of_two(float x) {
  constexpr float kRound = 12582912.0f;
  const float shifted = x + kRound;
  const float r = x - (shifted - kRound);
  float p = 9.782912553e-3f;  // minimises the relative error on [-1/2, 1/2] with value 1 at 0
  p = __builtin_fmaf(p, r, 5.597688363e-2f);
  p = __builtin_fmaf(p, r, 2.402071108e-1f);
  p = __builtin_fmaf(p, r, 6.931136044e-1f);
  p = __builtin_fmaf(p, r, 1.0f);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) +
                              (std::bit_cast<std::uint32_t>(shifted) << 23));
}

inline constexpr float kLog2OfE = 1.44269504088896341f;

template <>
inline float fast_exponential<c10::BFloat16>(float x) {
  return short_power_of_two(clamped(x * kLog2OfE, -125.5f, 125.5f));
}

// e^(x − greatest) for finite x ≤ greatest; for f32 and bf16 at least e^-87.
template <class Element>
inline Accumulator<Element> exponential_below(Accumulator<Element> x, Accumulator<Element> greatest) {
  return fast_exponential<Element>(x - greatest);
}
// The product with `greatest` is the same for a whole row, so its rounding cancels in the softmax.
template <>
inline float exponential_below<c10::BFloat16>(float x, float greatest) {
  const float exponent = __builtin_fmaf(x, kLog2OfE, -(greatest * kLog2OfE));
  const auto bits = std::bit_cast<std::uint32_t>(exponent), least = std::bit_cast<std::uint32_t>(-125.5f);
  return short_power_of_two(std::bit_cast<float>(bits < least ? bits : least));
}

}  // namespace penstock::nn::kernels
