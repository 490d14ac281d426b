// SPDX-License-Identifier: Apache-2.0
// The exponential in plain arithmetic, so that loops over it vectorise. Accurate to 2 units in the last place
// of f32.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace penstock::nn::kernels {

// Clamps x to [-87, 88], so results lie in [1.6e-38, 1.7e38]. NaN stays NaN.
inline float exponential(float x) {
  const float clamped = x < -87.0f ? -87.0f : (x > 88.0f ? 88.0f : x);
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  const float shifted = clamped * 1.44269504088896341f + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts (Cody and Waite)
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float fraction = (p * r) * r + r + 1.0f;
  const auto exponent = (std::bit_cast<std::uint32_t>(shifted) + 127u) << 23;
  return fraction * std::bit_cast<float>(exponent);
}

// 2^x with fused multiply-adds for x ≤ 126, within 2 units in the last place of f32. Clamps x to at least
// -125 (result 2.4e-38). NaN stays NaN. Half the work of exponential(): the argument needs no reduction in
// two parts, and the exponent is added as an integer.
inline float power_of_two(float x) {
  const float clamped = x < -125.0f ? -125.0f : x;
  constexpr float kRound = 12582912.0f;
  const float shifted = clamped + kRound;
  const float r = clamped - (shifted - kRound);
  float p = 1.535336188e-4f;  // Cephes, exp2f
  p = __builtin_fmaf(p, r, 1.339887440e-3f);
  p = __builtin_fmaf(p, r, 9.618437357e-3f);
  p = __builtin_fmaf(p, r, 5.550332471e-2f);
  p = __builtin_fmaf(p, r, 2.402264791e-1f);
  p = __builtin_fmaf(p, r, 6.931472028e-1f);
  p = __builtin_fmaf(p, r, 1.0f);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) +
                              (std::bit_cast<std::uint32_t>(shifted) << 23));
}

inline double exponential(double x) { return std::exp(x); }

}  // namespace penstock::nn::kernels
