// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>
#include <map>

#include "base/columns.h"
#include "base/text.h"
#include "plan/published/reference_fit.h"

namespace penstock::plan {
namespace {

std::string fine_percent(double share) { return number(100 * share, 2) + " %"; }

std::string print_parameters(const Fit& fit) {
  Rows rows{{"constant", "value", "±", "guess", "range"}};
  const auto& parameters = fit_parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const FitParameter& parameter = parameters[i];
    rows.push_back({parameter.name(), number(fit.values[i], 4), number(fit.deviations[i], 4),
                    exact_number(parameter.guess),
                    exact_number(parameter.low) + " to " + exact_number(parameter.high)});
  }
  return columns(rows, "lrrrl");
}

// Errors of rows of one kind.
struct Errors {
  std::vector<double> fitted, row, configuration, source;

  void add(const FittedRow& of) {
    fitted.push_back(std::abs(of.figure.relative_error()));
    row.push_back(std::abs(of.unseen_row));
    configuration.push_back(std::abs(of.unseen_configuration));
    source.push_back(std::abs(of.unseen_source));
  }
};

std::string three(const std::vector<double>& errors) {
  const ErrorStatistics found = statistics_of(errors);
  return number(100 * found.median, 1) + " " + number(100 * found.mean, 1) + " " + number(100 * found.p90, 1);
}

// Errors on the throughput tables, grouped by `key`.
std::string print_kinds(const Fit& fit, const std::string& what,
                        const std::function<std::string(const FittedRow&)>& key) {
  std::map<std::string, Errors> kinds;
  for (const FittedRow& row : fit.rows) {
    if (!row.figure.engine.empty()) kinds[key(row)].add(row);
  }
  Rows rows{{what, "rows", "fitted: median mean p90 %", "configuration unseen", "source unseen"}};
  for (const auto& [name, errors] : kinds) {
    rows.push_back({name, std::to_string(errors.fitted.size()), three(errors.fitted),
                    three(errors.configuration), three(errors.source)});
  }
  return columns(rows, "lrrrr") + "\n";
}

std::string print_summary(const Fit& fit) {
  std::map<std::string, Errors> tables;
  for (const FittedRow& row : fit.rows) tables[row.table].add(row);
  Rows rows{{"table", "rows", "mean", "greatest", "mean, row unseen", "mean, configuration unseen"}};
  for (const auto& [name, errors] : tables) {
    const ErrorStatistics fitted = statistics_of(errors.fitted);
    rows.push_back({name, std::to_string(fitted.count), fine_percent(fitted.mean),
                    fine_percent(fitted.greatest), fine_percent(statistics_of(errors.row).mean),
                    fine_percent(statistics_of(errors.configuration).mean)});
  }
  return columns(rows, "lr") + "\n";
}

// Coverage of the intervals that `plan` prints.
std::string print_coverage(const Fit& fit) {
  const Coverage coverage = coverage_of(checked_runs(fit));
  return "intervals of 80 % hold " + number(100 * coverage.configurations, 1) +
         " % of runs, from other configurations of their engine; " + number(100 * coverage.sources, 1) +
         " %, from other sources\n\n";
}

}  // namespace

std::string print_fit(const Fit& fit) {
  Rows rows{
      {"row", "predicted", "published", "error", "row unseen", "configuration unseen", "source unseen"}};
  for (const FittedRow& row : fit.rows) {
    const ScoredFigure& figure = row.figure;
    rows.push_back({row.table + " " + std::to_string(figure.row + 1) + ": " + figure.model +
                        (figure.engine.empty() ? "" : ", " + figure.setting),
                    number(figure.predicted, 2), number(figure.published, 2),
                    fine_percent(figure.relative_error()), fine_percent(row.unseen_row),
                    fine_percent(row.unseen_configuration), fine_percent(row.unseen_source)});
  }
  return print_parameters(fit) + "\n" + print_summary(fit) +
         print_kinds(fit, "throughput", [](const FittedRow&) { return "all"; }) +
         print_kinds(fit, "engine", [](const FittedRow& row) { return row.figure.engine; }) +
         print_kinds(fit, "hardware", [](const FittedRow& row) { return row.figure.hardware; }) +
         print_kinds(fit, "family", [](const FittedRow& row) { return row.figure.family; }) +
         print_kinds(fit, "source", [](const FittedRow& row) { return row.source; }) + print_coverage(fit) +
         columns(rows, "lr");
}

std::vector<CheckedRun> checked_runs(const Fit& fit) {
  std::vector<CheckedRun> runs;
  for (const FittedRow& row : fit.rows) {
    if (row.figure.engine.empty()) continue;
    CheckedRun run = as_checked(row.timed.workload, row.timed.layout, row.figure.engine);
    run.source = row.source;
    run.configuration = row.configuration;
    run.unseen_configuration = row.unseen_configuration;
    run.unseen_source = row.unseen_source;
    runs.push_back(std::move(run));
  }
  return runs;
}

std::string print_checked(const Fit& fit) {
  std::string text =
      "engine,family,source,configuration,tp,cp,ep,dp,pp,shards_weights,seq_len,unseen_configuration,unseen_"
      "source\n";
  for (const CheckedRun& run : checked_runs(fit)) {
    const auto cell = [](std::int64_t value) { return "," + std::to_string(value); };
    text += run.engine + "," + run.family + "," + "\"" + run.source + "\",\"" + run.configuration + "\"" +
            cell(run.mesh.tensor) + cell(run.mesh.context) + cell(run.mesh.expert) + cell(run.mesh.data) +
            cell(run.mesh.pipeline) + cell(run.shards_weights) + cell(run.seq_len) + "," +
            number(run.unseen_configuration, 4) + "," + number(run.unseen_source, 4) + "\n";
  }
  return text;
}

}  // namespace penstock::plan
