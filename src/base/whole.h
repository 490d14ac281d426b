// SPDX-License-Identifier: Apache-2.0
// Division of whole numbers, upwards. None is negative, divisors are positive.
#pragma once

#include <concepts>
#include <type_traits>

namespace penstock {

template <std::integral T>
constexpr T ceil_div(T whole, std::type_identity_t<T> part) {
  return (whole + part - 1) / part;
}

// The least multiple of `unit` that is no less.
template <std::integral T>
constexpr T round_up(T whole, std::type_identity_t<T> unit) {
  return ceil_div(whole, unit) * unit;
}

}  // namespace penstock
