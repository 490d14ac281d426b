// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

namespace penstock {

// Linearly interpolated quantile. `sorted` is ascending and not empty; `quantile` is from 0 to 1.
inline double at_quantile(const std::vector<double>& sorted, double quantile) {
  const double place = quantile * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace penstock
