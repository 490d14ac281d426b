// SPDX-License-Identifier: Apache-2.0
#include "plan/published/reference_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "plan/published/least_squares.h"
#include "reference.h"

namespace penstock::plan {
namespace {

double value_in(sim::Hardware hardware, const FitParameter& parameter) {
  OptionTable table;
  describe(hardware, table);
  return *std::get<double*>(find_option(table, parameter.section, parameter.key, "test").target);
}

TEST(LeastSquares, FindsTheBottomOfACurvedValleyAndStopsAtABound) {
  const Residuals rosenbrock = [](const std::vector<double>& x) {
    return std::vector<double>{10 * (x[1] - x[0] * x[0]), 1 - x[0]};
  };
  const auto free = least_squares(rosenbrock, {-1.2, 1}, {{-5, 5}, {-5, 5}});
  EXPECT_NEAR(free[0], 1, 1e-3);
  EXPECT_NEAR(free[1], 1, 2e-3);
  const auto bound = least_squares(rosenbrock, {-1.2, 1}, {{-5, 0.5}, {-5, 5}});
  EXPECT_DOUBLE_EQ(bound[0], 0.5);
  EXPECT_NEAR(bound[1], 0.25, 1e-3);
}

TEST(ReferenceFit, HardwareFilesHoldWhatTheFitFinds) {
  const HardwareSet files = reference_hardware();
  const Fit fit = fit_reference(
      reference_fit_tables([](const std::string& name) { return reference_table(name); }), files,
      /*leave_out=*/false);
  const auto& parameters = fit_parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    for (const std::string& name : parameters[i].hardware) {
      EXPECT_NEAR(value_in(files.at(name), parameters[i]), fit.values[i],
                  0.005 * (parameters[i].high - parameters[i].low))
          << name << " " << parameters[i].section << "." << parameters[i].key;
    }
  }
}

TEST(ReferenceFit, NoKindOfMachineHasMoreThanTwentyFiveConstantsAndEachIsInItsRange) {
  std::map<std::string, int> counts;
  for (const FitParameter& parameter : fit_parameters()) {
    for (const std::string& name : parameter.hardware) {
      ++counts[name];
      const double value = value_in(read_hardware(name), parameter);
      EXPECT_GE(value, parameter.low);
      EXPECT_LE(value, parameter.high);
    }
  }
  for (const auto& [name, count] : counts) EXPECT_LE(count, 25) << name;
}

}  // namespace
}  // namespace penstock::plan
