// SPDX-License-Identifier: Apache-2.0
// Integer helpers: ceiling division and products with an overflow limit. Arguments are non-negative, divisors
// positive.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

namespace penstock {

template <std::integral T>
constexpr T ceil_div(T whole, std::type_identity_t<T> part) {
  return (whole + part - 1) / part;
}

// Rounds up to a multiple of `unit`.
template <std::integral T>
constexpr T round_up(T whole, std::type_identity_t<T> unit) {
  return ceil_div(whole, unit) * unit;
}

// The product of `numbers`, each at least 1; limit + 1 if it exceeds `limit`, which is below 2^62.
constexpr std::int64_t product_within(std::int64_t limit, std::initializer_list<std::int64_t> numbers) {
  std::int64_t product = 1;
  for (const std::int64_t number : numbers) {
    if (number > limit / product) return limit + 1;
    product *= number;
  }
  return product;
}

}  // namespace penstock
