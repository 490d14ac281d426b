// SPDX-License-Identifier: Apache-2.0
#include "cli/report/score_report.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "cli/report/parts.h"
#include "plan/published/score_tables.h"
#include "plan/published/throughput.h"

namespace penstock::cli {
namespace {

constexpr std::size_t kWorst = 20;

std::string name_of(const plan::ScoredFigure& figure) {
  return "row " + std::to_string(figure.row + 1) + ", " + figure.model + ", " + figure.setting + ", " +
         signed_percent(figure.relative_error());
}

std::string statistics_text(const std::vector<double>& errors) {
  if (errors.empty()) return "no row is scored";
  const plan::ErrorStatistics found = plan::statistics_of(errors);
  return std::to_string(found.count) + (found.count == 1 ? " row" : " rows") + ", error: median " +
         number(100 * found.median, 1) + " %, mean " + number(100 * found.mean, 1) +
         " %, nine of ten within " + number(100 * found.p90, 1) + " %";
}

report::PointChart chart_of(const std::string& engine,
                            const std::vector<const plan::ScoredFigure*>& figures) {
  report::PointChart chart{.title = engine,
                           .x_name = "published",
                           .y_name = "predicted seconds of a step",
                           .x_unit = report::Unit::Seconds,
                           .y_unit = report::Unit::Seconds,
                           .points = {},
                           .compared = true};
  std::vector<double> errors;
  for (const plan::ScoredFigure* figure : figures) {
    errors.push_back(std::abs(figure->relative_error()));
    chart.points.push_back({name_of(*figure), figure->published, figure->predicted});
  }
  chart.note = statistics_text(errors) + ".";
  return chart;
}

report::BarChart worst_rows(const plan::Score& score, const std::map<std::size_t, plan::StepCost>& costs) {
  std::vector<const plan::ScoredFigure*> worst;
  for (const plan::ScoredFigure& figure : score.figures) worst.push_back(&figure);
  std::ranges::sort(worst, std::greater(),
                    [](const auto* figure) { return std::abs(figure->relative_error()); });
  worst.resize(std::min(worst.size(), kWorst));
  report::BarChart chart{
      .title = "The worst rows, term by term",
      .note = "Predicted terms in per cent of the published step; each name ends with the error."};
  Parts parts(worst.size());
  for (std::size_t i = 0; i < worst.size(); ++i) {
    chart.rows.push_back(name_of(*worst[i]) + " of " + number(worst[i]->published, 2) + " s");
    for (const auto& [name, seconds] : plan::terms_of(costs.at(worst[i]->row)))
      parts.add(i, name, std::round(1000 * seconds / worst[i]->published) / 10);
  }
  chart.parts = parts.without_empty();
  return chart;
}

}  // namespace

report::Report score_report(const plan::Table& table, const plan::Score& score,
                            const plan::KnownMachines& known) {
  if (!plan::is_throughput(table))
    throw InputError(table.origin() +
                     ": --report draws tables of throughput alone, with the columns source and step_s");
  std::map<std::size_t, plan::StepCost> costs;
  for (const plan::ThroughputRun& run : plan::read_throughput(table, known).runs)
    costs.emplace(run.row, plan::cost_of(run.timed, known));
  std::map<std::string, std::vector<const plan::ScoredFigure*>> engines;
  std::vector<double> errors;
  for (const plan::ScoredFigure& figure : score.figures) {
    engines[figure.engine].push_back(&figure);
    errors.push_back(std::abs(figure.relative_error()));
  }
  report::Report report{.title = "penstock plan --score " + table.origin() + ": " + statistics_text(errors)};
  for (const auto& [engine, figures] : engines) report.points.push_back(chart_of(engine, figures));
  if (!score.figures.empty()) report.bars.push_back(worst_rows(score, costs));
  return report;
}

}  // namespace penstock::cli
