// SPDX-License-Identifier: Apache-2.0
// Small bounded least squares: Levenberg-Marquardt with finite-difference derivatives, for residuals that
// each depend on few of the parameters.
#pragma once

#include <functional>
#include <vector>

namespace penstock::plan {

struct Bounds {
  double low = 0;
  double high = 1;
};

struct Residuals {
  std::size_t count = 0;
  std::function<double(std::size_t residual, const std::vector<double>& at)> value;
  // Per parameter, the residuals that may depend on it.
  std::vector<std::vector<std::size_t>> of_parameter;
};

// A local minimum of the sum of squared residuals within the bounds. Descends from `start` in at most `steps`
// steps.
std::vector<double> least_squares(const Residuals& residuals, std::vector<double> start,
                                  const std::vector<Bounds>& bounds, int steps = 200);

// Standard deviations of the parameters at `at`, from the curvature and the size of the residuals.
std::vector<double> deviations(const Residuals& residuals, const std::vector<double>& at,
                               const std::vector<Bounds>& bounds);

}  // namespace penstock::plan
