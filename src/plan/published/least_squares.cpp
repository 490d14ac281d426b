// SPDX-License-Identifier: Apache-2.0
#include "plan/published/least_squares.h"

#include <algorithm>
#include <cmath>

namespace penstock::plan {
namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

double sum_of_squares(const Vector& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

// Derivative of each residual by one parameter, with the step away from the nearer bound.
Vector derivative(const Residuals& residuals, const Vector& at, const Vector& there, std::size_t i,
                  const Bounds& bound) {
  const double width = 1e-4 * (bound.high - bound.low);
  const double step = at[i] + width <= bound.high ? width : -width;
  Vector moved = at;
  moved[i] += step;
  Vector slope = residuals(moved);
  for (std::size_t r = 0; r < slope.size(); ++r) slope[r] = (slope[r] - there[r]) / step;
  return slope;
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
  Matrix jacobian(n);
  for (std::size_t i = 0; i < n; ++i) jacobian[i] = derivative(residuals, at, there, i, bounds[i]);
  Quadratic quadratic{Matrix(n, Vector(n)), Vector(n)};
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t r = 0; r < there.size(); ++r) quadratic.slope[i] += jacobian[i][r] * there[r];
    for (std::size_t j = 0; j <= i; ++j) {
      for (std::size_t r = 0; r < there.size(); ++r)
        quadratic.curvature[i][j] += jacobian[i][r] * jacobian[j][r];
      quadratic.curvature[j][i] = quadratic.curvature[i][j];
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

}  // namespace

std::vector<double> least_squares(const Residuals& residuals, std::vector<double> at,
                                  const std::vector<Bounds>& bounds) {
  Vector there = residuals(at);
  double damping = 1e-3;
  for (int iteration = 0; iteration < 200 && damping < 1e8; ++iteration) {
    Quadratic quadratic = quadratic_at(residuals, at, there, bounds);
    hold_at_bounds(quadratic, at, bounds);
    for (std::size_t i = 0; i < at.size(); ++i) quadratic.curvature[i][i] *= 1 + damping;
    const Vector step = solve(quadratic.curvature, quadratic.slope);
    Vector moved = at;
    for (std::size_t i = 0; i < at.size(); ++i)
      moved[i] = std::clamp(at[i] - step[i], bounds[i].low, bounds[i].high);
    Vector found = residuals(moved);
    const double before = sum_of_squares(there), after = sum_of_squares(found);
    if (after >= before) {
      damping *= 10;
      continue;
    }
    at = std::move(moved);
    there = std::move(found);
    damping *= 0.2;
    if (before - after < 1e-10 * before) break;
  }
  return at;
}

}  // namespace penstock::plan
