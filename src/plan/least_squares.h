// SPDX-License-Identifier: Apache-2.0
// Small bounded least squares: Levenberg's and Marquardt's method with differences for derivatives.
#pragma once

#include <functional>
#include <vector>

namespace penstock::plan {

struct Bounds {
  double low = 0;
  double high = 1;
};

using Residuals = std::function<std::vector<double>(const std::vector<double>&)>;

// The point within the bounds where the sum of squared residuals is least, from `start` downhill. The number
// of residuals must not change from call to call.
std::vector<double> least_squares(const Residuals& residuals, std::vector<double> start,
                                  const std::vector<Bounds>& bounds);

}  // namespace penstock::plan
