// SPDX-License-Identifier: Apache-2.0
#include "plan/published/reference_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <regex>
#include <sstream>

#include "plan/published/least_squares.h"
#include "reference.h"

namespace penstock::plan {
namespace {

// The file of that name, as a path without its ending.
std::string path_of(const FitParameter& parameter, const std::string& name) {
  if (parameter.engine) return "engines/" + name;
  const std::string published = "hardware/published/" + name;
  return std::filesystem::exists(PENSTOCK_SOURCE_DIR "/" + published + ".toml") ? published
                                                                                : "hardware/" + name;
}

const Fit& fit_to_all_rows() {
  static const Fit fit =
      fit_reference(reference_fit_tables([](const std::string& name) { return reference_table(name); }),
                    reference_machines(), /*leave_out=*/false);
  return fit;
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

// Of "hardware/a100".
std::vector<FittedLine> fitted_lines(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  static const std::regex heading(R"(\[(\w+)\].*)"),
      line(R"((\w+) = ([0-9.]+) *# .*\bfitted\b( on ([\w-]+))?.*)");
  std::vector<FittedLine> found;
  std::string section;
  std::istringstream file(read_source(path + ".toml"));
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
    const auto& files = parameters[i].files;
    if (parameters[i].section == line.section &&
        (parameters[i].key == line.key || parameters[i].also == line.key) &&
        std::ranges::find(files, line.machine) != files.end())
      return &fit.values[i];
  }
  return nullptr;
}

// Files print four decimals; the rest is what the last steps of the fit differ by from compiler to compiler.
constexpr double kFileStep = 0.00015;

TEST(LeastSquares, FindsTheBottomOfACurvedValleyAndStopsAtABound) {
  const auto rosenbrock = [](std::size_t residual, const std::vector<double>& x) {
    return residual == 0 ? 10 * (x[1] - x[0] * x[0]) : 1 - x[0];
  };
  const Residuals residuals{2, rosenbrock, {{0, 1}, {0}}};
  const auto free = least_squares(residuals, {-1.2, 1}, {{-5, 5}, {-5, 5}});
  EXPECT_NEAR(free[0], 1, 1e-3);
  EXPECT_NEAR(free[1], 1, 2e-3);
  const auto bound = least_squares(residuals, {-1.2, 1}, {{-5, 0.5}, {-5, 5}});
  EXPECT_DOUBLE_EQ(bound[0], 0.5);
  EXPECT_NEAR(bound[1], 0.25, 1e-3);
}

TEST(LeastSquares, TellsHowWellALineIsDeterminedAndLeavesAloneWhatNothingDependsOn) {
  // y = a + b·x at x = 0..9 with errors of ±1 in turn; the third parameter is in no residual.
  const auto line = [](std::size_t i, const std::vector<double>& at) {
    const double x = static_cast<double>(i), error = i % 2 == 0 ? 1 : -1;
    return at[0] + at[1] * x - (2 + 3 * x + error);
  };
  std::vector<std::size_t> all(10);
  std::iota(all.begin(), all.end(), std::size_t{0});
  const Residuals residuals{10, line, {all, all, {}}};
  const std::vector<Bounds> bounds{{-100, 100}, {-100, 100}, {-100, 100}};
  const auto found = least_squares(residuals, {0, 0, 7}, bounds);
  EXPECT_NEAR(found[1], 3, 0.1);
  EXPECT_EQ(found[2], 7);
  const auto near = deviations(residuals, found, bounds);
  const double residual = std::sqrt(10.0 / 7);             // ten errors of about 1, less three parameters
  EXPECT_NEAR(near[1], residual / std::sqrt(82.5), 0.02);  // 82.5: the sum of (x − 4.5)²
}

TEST(ReferenceFit, EveryFigureCalledFittedInAHardwareFileIsTheFits) {
  const Fit& fit = fit_to_all_rows();
  for (const char* folder : {"hardware", "hardware/published", "engines"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(PENSTOCK_SOURCE_DIR "/" + std::string(folder))) {
      if (entry.path().extension() != ".toml") continue;
      const std::string path = std::string(folder) + "/" + entry.path().stem().string();
      for (const FittedLine& line : fitted_lines(path)) {
        const std::string where =
            path + ": " + line.section + "." + line.key + " as fitted on " + line.machine;
        const double* fitted = fitted_value(fit, line);
        ASSERT_NE(fitted, nullptr) << where << ": the fit has no such constant";
        EXPECT_NEAR(line.value, *fitted, kFileStep) << where;
      }
    }
  }
}

TEST(ReferenceFit, EveryConstantOfTheFitIsCalledFittedInTheFilesOfItsMachines) {
  for (const FitParameter& parameter : fit_parameters()) {
    for (const std::string& name : parameter.files) {
      const auto lines = fitted_lines(path_of(parameter, name));
      EXPECT_TRUE(std::ranges::any_of(lines,
                                      [&](const FittedLine& line) {
                                        return line.section == parameter.section && line.key == parameter.key;
                                      }))
          << name << ": " << parameter.section << "." << parameter.key;
    }
  }
}

TEST(ReferenceFit, TheKeptTableHasTodaysConstants) {
  const Fit& fit = fit_to_all_rows();
  const std::string kept = read_source("bench/results/reference_fit.txt");
  const auto& parameters = fit_parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string name = parameters[i].name() + " ";
    const std::size_t at = kept.find("\n" + name);
    ASSERT_NE(at, std::string::npos) << name << "is not in bench/results/reference_fit.txt";
    EXPECT_NEAR(std::stod(kept.substr(at + 1 + name.size())), fit.values[i], kFileStep) << name;
  }
}

TEST(ReferenceFit, FewConstantsBelongToAnEngineOrAKindOfMachineAndEachIsInItsRange) {
  constexpr int kOfAnEngine = 6, kOfAMachine = 8;
  std::map<std::string, int> counts;
  const Fit& fit = fit_to_all_rows();
  const auto& parameters = fit_parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_GE(fit.values[i], parameters[i].low);
    EXPECT_LE(fit.values[i], parameters[i].high);
    for (const std::string& name : parameters[i].files) ++counts[path_of(parameters[i], name)];
  }
  for (const auto& [path, count] : counts) {
    const bool engine = path.starts_with("engines/");
    const int most = engine ? kOfAnEngine : kOfAMachine;
    EXPECT_LE(count, most) << path;
  }
}

}  // namespace
}  // namespace penstock::plan
