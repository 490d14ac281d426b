// SPDX-License-Identifier: Apache-2.0
// The exponential as plain arithmetic, so that loops over it vectorise; within 2 units in the last place of
// f32.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace penstock::nn::kernels {

// Below -87 the result is that of -87 (1.6e-38), above 88 that of 88 (1.7e38); NaN stays NaN.
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

inline double exponential(double x) { return std::exp(x); }

}  // namespace penstock::nn::kernels
