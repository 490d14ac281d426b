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

// The nearest legal values in 1..limit below and above `value`: "6 or 8", "4", or "none". Calls legal() at
// most `limit` times.
template <class Legal>
std::string nearest_legal(std::int64_t value, std::int64_t limit, Legal legal) {
  std::int64_t below = std::min(value - 1, limit);
  while (below > 0 && !legal(below)) --below;
  std::int64_t above = std::max<std::int64_t>(value + 1, 1);
  while (above <= limit && !legal(above)) ++above;
  if (below > 0 && above <= limit) return std::to_string(below) + " or " + std::to_string(above);
  if (below > 0) return std::to_string(below);
  return above <= limit ? std::to_string(above) : "none";
}

// The divisors of `whole` nearest to `value`, which is not a divisor.
inline std::string divisors_near(std::int64_t value, std::int64_t whole) {
  return nearest_legal(value, whole, [&](std::int64_t other) { return whole % other == 0; });
}

// The multiples of `unit` nearest to `value`, which is not a multiple.
inline std::string multiples_near(std::int64_t value, std::int64_t unit) {
  const std::int64_t below = value / unit * unit;
  return (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + unit);
}

}  // namespace penstock
