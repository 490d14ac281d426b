// SPDX-License-Identifier: Apache-2.0
#include "plan/published/reference_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

#include "plan/published/least_squares.h"
#include "reference.h"

namespace penstock::plan {
namespace {

double value_in(sim::Hardware hardware, const FitParameter& parameter) {
  OptionTable table;
  describe(hardware, table);
  return *std::get<double*>(find_option(table, parameter.section, parameter.key, "test").target);
}

Fit fit_to_all_rows() {
  return fit_reference(reference_fit_tables([](const std::string& name) { return reference_table(name); }),
                       reference_hardware(), /*leave_out=*/false);
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// A line of a hardware file whose comment says "fitted", or "as fitted on A800".
struct FittedLine {
  std::string section, key,
      machine;  // the machine whose fit it repeats; the file's own unless another is named
  double value = 0;
};

std::vector<FittedLine> fitted_lines(const std::string& name) {
  static const std::regex heading(R"(\[(\w+)\].*)"),
      line(R"((\w+) = ([0-9.]+) *# .*\bfitted\b( on (\w+))?.*)");
  std::vector<FittedLine> found;
  std::string section;
  std::istringstream file(read_source("hardware/" + name + ".toml"));
  std::smatch part;
  for (std::string text; std::getline(file, text);) {
    if (std::regex_match(text, part, heading)) section = part[1];
    if (text.starts_with('#') || text.find("fitted") == std::string::npos) continue;
    EXPECT_TRUE(std::regex_match(text, part, line)) << name << ": " << text;
    found.push_back({section, part[1], part[4].matched ? lower(part[4]) : name, std::stod(part[2])});
  }
  return found;
}

const double* fitted_value(const Fit& fit, const FittedLine& line) {
  const auto& parameters = fit_parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& machines = parameters[i].hardware;
    if (parameters[i].section == line.section && parameters[i].key == line.key &&
        std::ranges::find(machines, line.machine) != machines.end())
      return &fit.values[i];
  }
  return nullptr;
}

// Files print four decimals; the rest is what the last steps of the fit differ by from compiler to compiler.
constexpr double kFileStep = 0.00015;

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

TEST(ReferenceFit, EveryFigureCalledFittedInAHardwareFileIsTheFits) {
  const Fit fit = fit_to_all_rows();
  for (const auto& entry : std::filesystem::directory_iterator(PENSTOCK_SOURCE_DIR "/hardware")) {
    const std::string name = entry.path().stem();
    for (const FittedLine& line : fitted_lines(name)) {
      const std::string where = name + ": " + line.section + "." + line.key + " as fitted on " + line.machine;
      const double* fitted = fitted_value(fit, line);
      ASSERT_NE(fitted, nullptr) << where << ": the fit has no such constant";
      EXPECT_NEAR(line.value, *fitted, kFileStep) << where;
    }
  }
}

TEST(ReferenceFit, EveryConstantOfTheFitIsCalledFittedInTheFilesOfItsMachines) {
  for (const FitParameter& parameter : fit_parameters()) {
    for (const std::string& name : parameter.hardware) {
      const auto lines = fitted_lines(name);
      EXPECT_TRUE(std::ranges::any_of(lines,
                                      [&](const FittedLine& line) {
                                        return line.section == parameter.section && line.key == parameter.key;
                                      }))
          << name << ": " << parameter.section << "." << parameter.key;
    }
  }
}

TEST(ReferenceFit, TheKeptTableHasTodaysConstants) {
  const Fit fit = fit_to_all_rows();
  const std::string kept = read_source("bench/results/reference_fit.txt");
  const auto& parameters = fit_parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string name =
        parameters[i].section + "." + parameters[i].key + " of " + join(parameters[i].hardware, ", ") + " ";
    const std::size_t at = kept.find("\n" + name);
    ASSERT_NE(at, std::string::npos) << name << "is not in bench/results/reference_fit.txt";
    EXPECT_NEAR(std::stod(kept.substr(at + 1 + name.size())), fit.values[i], kFileStep) << name;
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
