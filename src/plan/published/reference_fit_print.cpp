// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>

#include "base/columns.h"
#include "base/text.h"
#include "plan/published/reference_fit.h"

namespace penstock::plan {
namespace {

std::string fine_percent(double share) { return number(100 * share, 2) + " %"; }

std::string print_parameters(const Fit& fit) {
  Rows rows{{"constant", "value", "guess", "range"}};
  const auto& parameters = fit_parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const FitParameter& parameter = parameters[i];
    const std::string name =
        parameter.section + "." + parameter.key + " of " + join(parameter.hardware, ", ");
    rows.push_back({name, number(fit.values[i], 4), exact_number(parameter.guess),
                    exact_number(parameter.low) + " to " + exact_number(parameter.high)});
  }
  return columns(rows, "lrrl");
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
  Rows rows{{"table", "rows", "mean", "greatest", "mean, row unseen", "mean, configuration unseen"}};
  for (const auto& [name, sums] : tables) {
    rows.push_back({name, std::to_string(sums.count), fine_percent(sums.fitted / sums.count),
                    fine_percent(sums.greatest), fine_percent(sums.unseen_row / sums.count),
                    fine_percent(sums.unseen_configuration / sums.count)});
  }
  return columns(rows, "lr");
}

}  // namespace

std::string print_fit(const Fit& fit) {
  Rows rows{{"row", "predicted", "published", "error", "row unseen", "configuration unseen"}};
  for (const FittedRow& row : fit.rows) {
    const ScoredFigure& figure = row.figure;
    rows.push_back({row.table + " " + std::to_string(figure.row + 1) + ": " + figure.model,
                    number(figure.predicted, 2), number(figure.published, 2),
                    fine_percent(figure.relative_error()), fine_percent(row.unseen_row),
                    fine_percent(row.unseen_configuration)});
  }
  return print_parameters(fit) + "\n" + print_summary(fit) + "\n" + columns(rows, "lr");
}

}  // namespace penstock::plan
