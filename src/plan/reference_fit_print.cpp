// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>

#include "base/text.h"
#include "plan/reference_fit.h"

namespace penstock::plan {
namespace {

std::string percent(double share) { return number(100 * share, 2) + " %"; }

std::string aligned(const std::string& text, std::size_t width) {
  return text + std::string(width > text.size() ? width - text.size() : 1, ' ');
}

std::string print_parameters(const Fit& fit) {
  std::string text = "constant                                         value      guess    range\n";
  const auto& parameters = fit_parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const FitParameter& parameter = parameters[i];
    const std::string name =
        parameter.section + "." + parameter.key + " of " + join(parameter.hardware, ", ");
    text += aligned(name, 49) + aligned(number(fit.values[i], 4), 11) +
            aligned(exact_number(parameter.guess), 9) + exact_number(parameter.low) + " to " +
            exact_number(parameter.high) + "\n";
  }
  return text;
}

struct Sums {
  int count = 0;
  double fitted = 0, unseen_row = 0, unseen_configuration = 0, greatest = 0;
};

std::string print_summary(const Fit& fit) {
  std::map<std::string, Sums> tables;
  for (const FittedRow& row : fit.rows) {
    Sums& sums = tables[row.table];
    ++sums.count;
    sums.fitted += std::abs(row.figure.relative_error());
    sums.greatest = std::max(sums.greatest, std::abs(row.figure.relative_error()));
    sums.unseen_row += std::abs(row.unseen_row);
    sums.unseen_configuration += std::abs(row.unseen_configuration);
  }
  std::string text =
      "table             rows   mean      greatest  mean, row unseen   mean, configuration unseen\n";
  for (const auto& [name, sums] : tables) {
    text += aligned(name, 18) + aligned(std::to_string(sums.count), 7) +
            aligned(percent(sums.fitted / sums.count), 10) + aligned(percent(sums.greatest), 10) +
            aligned(percent(sums.unseen_row / sums.count), 19) +
            percent(sums.unseen_configuration / sums.count) + "\n";
  }
  return text;
}

}  // namespace

std::string print_fit(const Fit& fit) {
  std::string text =
      print_parameters(fit) + "\n" + print_summary(fit) +
      "\nrow                                                         predicted    published    error     "
      "row unseen  configuration unseen\n";
  for (const FittedRow& row : fit.rows) {
    const ScoredFigure& figure = row.figure;
    const std::string name = row.table + " " + std::to_string(figure.row + 1) + ": " + figure.model;
    text += aligned(name, 60) + aligned(number(figure.predicted, 2), 13) +
            aligned(number(figure.published, 2), 13) + aligned(percent(figure.relative_error()), 10) +
            aligned(percent(row.unseen_row), 12) + percent(row.unseen_configuration) + "\n";
  }
  return text;
}

}  // namespace penstock::plan
