// SPDX-License-Identifier: Apache-2.0
#include "plan/published/least_squares.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace penstock::plan {
namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

double sum_of_squares(const Vector& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

Vector all_of(const Residuals& residuals, const Vector& at) {
  Vector values(residuals.count);
  for (std::size_t r = 0; r < values.size(); ++r) values[r] = residuals.value(r, at);
  return values;
}

struct Slope {
  std::size_t parameter;
  double value;
};

// Slopes of each residual by the parameters that it depends on. Steps up, or down at the upper bound.
std::vector<std::vector<Slope>> slopes_at(const Residuals& residuals, const Vector& at, const Vector& there,
                                          const std::vector<Bounds>& bounds) {
  std::vector<std::vector<Slope>> slopes(residuals.count);
  Vector moved = at;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double width = 1e-4 * (bounds[i].high - bounds[i].low);
    const double step = at[i] + width <= bounds[i].high ? width : -width;
    moved[i] = at[i] + step;
    for (const std::size_t r : residuals.of_parameter[i]) {
      const double slope = (residuals.value(r, moved) - there[r]) / step;
      if (slope != 0) slopes[r].push_back({i, slope});
    }
    moved[i] = at[i];
  }
  return slopes;
}

// Solves a symmetric positive definite system by elimination.
Vector solve(Matrix a, Vector b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t row = i + 1; row < n; ++row) {
      const double factor = a[row][i] / a[i][i];
      for (std::size_t column = i; column < n; ++column) a[row][column] -= factor * a[i][column];
      b[row] -= factor * b[i];
    }
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t column = i + 1; column < n; ++column) b[i] -= a[i][column] * b[column];
    b[i] /= a[i][i];
  }
  return b;
}

struct Quadratic {
  Matrix curvature;  // JᵀJ
  Vector slope;      // Jᵀr
};

Quadratic quadratic_at(const Residuals& residuals, const Vector& at, const Vector& there,
                       const std::vector<Bounds>& bounds) {
  const std::size_t n = at.size();
  Quadratic quadratic{Matrix(n, Vector(n)), Vector(n)};
  const auto slopes = slopes_at(residuals, at, there, bounds);
  for (std::size_t r = 0; r < slopes.size(); ++r) {
    for (const Slope& a : slopes[r]) {
      quadratic.slope[a.parameter] += a.value * there[r];
      for (const Slope& b : slopes[r]) quadratic.curvature[a.parameter][b.parameter] += a.value * b.value;
    }
  }
  return quadratic;
}

// A parameter at its bound whose step points outside is excluded from the step.
void hold_at_bounds(Quadratic& quadratic, const Vector& at, const std::vector<Bounds>& bounds) {
  for (std::size_t i = 0; i < at.size(); ++i) {
    const bool held = (at[i] <= bounds[i].low && quadratic.slope[i] > 0) ||
                      (at[i] >= bounds[i].high && quadratic.slope[i] < 0);
    if (!held) continue;
    for (std::size_t j = 0; j < at.size(); ++j) quadratic.curvature[i][j] = quadratic.curvature[j][i] = 0;
    quadratic.curvature[i][i] = 1;
    quadratic.slope[i] = 0;
  }
}

// Keeps a parameter without residuals where it is.
void hold_unknown(Quadratic& quadratic) {
  for (std::size_t i = 0; i < quadratic.slope.size(); ++i) {
    if (quadratic.curvature[i][i] == 0) quadratic.curvature[i][i] = 1;
  }
}

}  // namespace

std::vector<double> least_squares(const Residuals& residuals, std::vector<double> at,
                                  const std::vector<Bounds>& bounds, int steps) {
  Vector there = all_of(residuals, at);
  double damping = 1e-3;
  std::optional<Quadratic> current;  // reused until a step succeeds
  for (int step = 0; step < steps && damping < 1e8; ++step) {
    if (!current) current = quadratic_at(residuals, at, there, bounds);
    Quadratic quadratic = *current;
    hold_unknown(quadratic);
    hold_at_bounds(quadratic, at, bounds);
    for (std::size_t i = 0; i < at.size(); ++i) quadratic.curvature[i][i] *= 1 + damping;
    const Vector change = solve(quadratic.curvature, quadratic.slope);
    Vector moved = at;
    for (std::size_t i = 0; i < at.size(); ++i)
      moved[i] = std::clamp(at[i] - change[i], bounds[i].low, bounds[i].high);
    Vector found = all_of(residuals, moved);
    const double before = sum_of_squares(there), after = sum_of_squares(found);
    if (after >= before) {
      damping *= 10;
      continue;
    }
    at = std::move(moved);
    there = std::move(found);
    current.reset();
    damping *= 0.2;
    if (before - after < 1e-9 * before) break;
  }
  return at;
}

// Square roots of the diagonal of the inverse curvature, times the residuals' own size.
std::vector<double> deviations(const Residuals& residuals, const std::vector<double>& at,
                               const std::vector<Bounds>& bounds) {
  const Vector there = all_of(residuals, at);
  Quadratic quadratic = quadratic_at(residuals, at, there, bounds);
  hold_unknown(quadratic);
  const std::size_t n = at.size();
  const double free = std::max(1.0, static_cast<double>(residuals.count) - static_cast<double>(n));
  const double size = std::sqrt(sum_of_squares(there) / free);
  Vector found(n);
  for (std::size_t i = 0; i < n; ++i) {
    Vector unit(n);
    unit[i] = 1;
    found[i] = size * std::sqrt(std::max(0.0, solve(quadratic.curvature, std::move(unit))[i]));
  }
  return found;
}

}  // namespace penstock::plan
