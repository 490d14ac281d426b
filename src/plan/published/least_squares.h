// SPDX-License-Identifier: Apache-2.0
// Small bounded least squares: Levenberg-Marquardt with finite-difference derivatives.
#pragma once

#include <functional>
#include <vector>

namespace penstock::plan {

struct Bounds {
  double low = 0;
  double high = 1;
};

using Residuals = std::function<std::vector<double>(const std::vector<double>&)>;

// A local minimum of the sum of squared residuals within the bounds, descending from `start`. The number of
// residuals must be the same in every call.
std::vector<double> least_squares(const Residuals& residuals, std::vector<double> start,
                                  const std::vector<Bounds>& bounds);

}  // namespace penstock::plan
