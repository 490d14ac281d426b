// SPDX-License-Identifier: Apache-2.0
// Error texts that name the constraint and the nearest legal values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace penstock {

// As in a file of options: "parallel.dp = 4".
inline std::string setting(const char* key, std::int64_t value) {
  return std::string(key) + " = " + std::to_string(value);
}

// Legal values on both sides of another: "6 or 8", "4", or "none". 0: there is none on that side.
inline std::string either(std::int64_t below, std::int64_t above) {
  if (below > 0 && above > 0) return std::to_string(below) + " or " + std::to_string(above);
  return below + above > 0 ? std::to_string(below + above) : "none";
}

// The nearest legal values in 1..limit below and above `value`, as either() prints them. Calls legal() at
// most `limit` times.
template <class Legal>
std::string nearest_legal(std::int64_t value, std::int64_t limit, Legal legal) {
  std::int64_t below = std::min(value - 1, limit);
  while (below > 0 && !legal(below)) --below;
  std::int64_t above = std::max<std::int64_t>(value + 1, 1);
  while (above <= limit && !legal(above)) ++above;
  return either(std::max<std::int64_t>(below, 0), above <= limit ? above : 0);
}

// The divisors of `whole` nearest to `value`, which is not a divisor. Takes time with the root of `whole`.
inline std::string divisors_near(std::int64_t value, std::int64_t whole) {
  std::int64_t below = 0, above = 0;
  const auto take = [&](std::int64_t divisor) {
    if (divisor < value) below = std::max(below, divisor);
    if (divisor > value && (above == 0 || divisor < above)) above = divisor;
  };
  for (std::int64_t divisor = 1; divisor <= whole / divisor; ++divisor) {
    if (whole % divisor != 0) continue;
    take(divisor);
    take(whole / divisor);
  }
  return either(below, above);
}

// The multiples of `unit` nearest to `value`, which is not a multiple.
inline std::string multiples_near(std::int64_t value, std::int64_t unit) {
  const std::int64_t below = value / unit * unit;
  return (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + unit);
}

}  // namespace penstock
