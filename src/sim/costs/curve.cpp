// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/curve.h"

#include <algorithm>
#include <cmath>

namespace penstock::sim {
namespace {

// A position at the fraction `share` of the way from point `below` to point `above`.
struct Between {
  std::size_t below, above;
  double share;
};

Between locate(const Numbers& at, double position) {
  const auto found = std::lower_bound(at.begin(), at.end(), position);
  if (found == at.begin()) return {0, 0, 0};
  if (found == at.end()) return {at.size() - 1, at.size() - 1, 0};
  const auto above = static_cast<std::size_t>(found - at.begin());
  return {above - 1, above, std::log(position / at[above - 1]) / std::log(at[above] / at[above - 1])};
}

}  // namespace

double on_curve(const Numbers& at, const Numbers& values, double position) {
  const Between place = locate(at, position);
  return values[place.below] + place.share * (values[place.above] - values[place.below]);
}

double on_grid(const Numbers& rows, const Numbers& columns, const Numbers& values, double row,
               double column) {
  const Between down = locate(rows, row), across = locate(columns, column);
  const auto in_row = [&](std::size_t i) {
    const double left = values[i * columns.size() + across.below];
    return left + across.share * (values[i * columns.size() + across.above] - left);
  };
  const double upper = in_row(down.below);
  return upper + down.share * (in_row(down.above) - upper);
}

}  // namespace penstock::sim
