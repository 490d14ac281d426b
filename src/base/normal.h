// SPDX-License-Identifier: Apache-2.0
// Normal numbers from random bits (Box and Muller 1958) by sums, products, a division and a root alone: they
// have the same bits on every machine, and loops over them vectorise.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

namespace penstock {

// A power series' value at x; its last term comes first.
template <std::size_t n>
inline double sum_of(const std::array<double, n>& terms, double x) {
  double sum = 0;
  for (const double term : terms) sum = sum * x + term;
  return sum;
}

// The upper 53 bits as a number in [0, 1). Formed by halves, since few processors convert vectors of 64-bit
// integers.
inline double unit_interval(std::uint64_t bits) {
  const auto upper = static_cast<double>(static_cast<std::int32_t>(bits >> 38));
  const auto lower = static_cast<double>(static_cast<std::int32_t>(bits >> 11 & 0x7FFFFFF));
  return (upper * 0x1p27 + lower) * 0x1p-53;
}

// ln x of a normal x > 0. x = m·2^e with √½ ≤ m < √2; s = (m − 1)/(m + 1), |s| < 0.172;
// ln m = 2 artanh s = 2s(1 + s²/3 + s⁴/5 + ...).
inline double natural_logarithm(double x) {
  static constexpr std::array kTerms{1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
                                     1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
  constexpr auto kRootOfHalf = std::bit_cast<std::uint64_t>(std::numbers::sqrt2 / 2);
  constexpr int kBias = 1024;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t biased = (bits - kRootOfHalf + (std::uint64_t{kBias} << 52)) >> 52;  // e + 1024
  const auto m = std::bit_cast<double>(bits - ((biased - kBias) << 52));
  const double s = (m - 1) / (m + 1);
  const auto e = static_cast<double>(static_cast<std::int32_t>(biased) - kBias);
  return e * std::numbers::ln2 + 2 * s * sum_of(kTerms, s * s);
}

// cos 2πx for 0 ≤ x < 1: x = q/4 + t with |t| ≤ 1/8, and the sine or cosine of 2πt by Taylor's series.
inline double cosine_of_turns(double x) {
  static constexpr std::array kCosine{1 / 20922789888000.0,
                                      -1 / 87178291200.0,
                                      1 / 479001600.0,
                                      -1 / 3628800.0,
                                      1 / 40320.0,
                                      -1 / 720.0,
                                      1 / 24.0,
                                      -1 / 2.0,
                                      1.0};  // 1/16!, -1/14!, ...
  static constexpr std::array kSine{-1 / 1307674368000.0, 1 / 6227020800.0, -1 / 39916800.0, 1 / 362880.0,
                                    -1 / 5040.0,          1 / 120.0,        -1 / 6.0,        1.0};
  constexpr double kRound = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  const double shifted = 4 * x + kRound;
  const double angle = 2 * std::numbers::pi * (x - (shifted - kRound) / 4), square = angle * angle;
  const double cosine = sum_of(kCosine, square), sine = angle * sum_of(kSine, square);
  const auto q = std::bit_cast<std::uint64_t>(shifted);
  const auto sign = ((q + 1) & 2) << 62;  // of cos(q·π/2 + angle): negative in the second and third quarter
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(q & 1 ? sine : cosine) ^ sign);
}

// From two independent sets of bits.
inline double normal_number(std::uint64_t of_radius, std::uint64_t of_angle) {
  return std::sqrt(-2 * natural_logarithm(1 - unit_interval(of_radius))) *
         cosine_of_turns(unit_interval(of_angle));
}

}  // namespace penstock
