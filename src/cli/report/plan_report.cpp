// SPDX-License-Identifier: Apache-2.0
#include "cli/report/plan_report.h"

#include <algorithm>

#include "base/text.h"
#include "cli/report/parts.h"
#include "cli/report/run_report.h"
#include "plan/simulated_step.h"

namespace penstock::cli {
namespace {

using plan::Candidate;

constexpr std::int64_t kMostDrawnActions = 400'000;

std::vector<std::string> names_of(const std::vector<Candidate>& candidates) {
  std::vector<std::string> names;
  for (const Candidate& candidate : candidates) names.push_back(plan::print_layout(candidate.layout));
  return names;
}

report::BarChart memory_chart(const plan::Plan& plan) {
  Parts parts(plan.result.best.size());
  for (std::size_t row = 0; row < plan.result.best.size(); ++row) {
    for (const auto& [name, bytes] : model::categories(plan.result.best[row].memory.fullest))
      parts.add(row, name, static_cast<double>(bytes));
  }
  return {
      .title = "Memory by category",
      .note =
          "Peaks on the fullest device of each of the best candidates, which need not occur at "
          "the same time: beside each bar is their sum, which may exceed what a candidate needs. A device "
          "may hold " +
          print_bytes(static_cast<Bytes>(plan.cluster.limit)) + ".",
      .unit = report::Unit::Bytes,
      .rows = names_of(plan.result.best),
      .parts = parts.without_empty()};
}

report::BarChart time_chart(const plan::Plan& plan) {
  Parts parts(plan.result.best.size());
  for (std::size_t row = 0; row < plan.result.best.size(); ++row) {
    for (const auto& [name, seconds] : plan::terms_of(plan.result.best[row].cost))
      parts.add(row, name, seconds);
  }
  return {.title = "Time by term",
          .note = "A step of the same candidates in closed form, on the device with the most work.",
          .unit = report::Unit::Seconds,
          .rows = names_of(plan.result.best),
          .parts = parts.without_empty()};
}

report::PointChart front_chart(const plan::Plan& plan) {
  report::PointChart chart{
      .title = "Least time by memory",
      .note = "The fastest candidate in closed form for each amount of memory of the fullest device.",
      .x_name = "memory of the fullest device",
      .y_name = "seconds of a step",
      .x_unit = report::Unit::Bytes,
      .y_unit = report::Unit::Seconds};
  for (const Candidate& candidate : plan.result.pareto) {
    chart.points.push_back({plan::print_layout(candidate.layout),
                            static_cast<double>(candidate.memory.fullest.total()), candidate.cost.total()});
  }
  return chart;
}

report::BarChart rejection_chart(const plan::Plan& plan) {
  report::BarChart chart{.title = "Rejected",
                         .note = std::to_string(plan.result.candidates) + " candidates, of which " +
                                 std::to_string(plan.result.fitting()) + " fit.",
                         .parts = {{"candidates", {}}}};
  for (std::size_t i = 0; i < plan::kRejections; ++i) {
    if (plan.result.rejected[i] == 0) continue;
    chart.rows.emplace_back(plan::sentence_of(static_cast<plan::Rejection>(i)));
    chart.parts[0].values.push_back(static_cast<double>(plan.result.rejected[i]));
  }
  return chart;
}

// Bytes of every device of the pipeline; consecutive devices with equal bytes share a row.
report::Table device_table(const plan::Plan& plan, const Candidate& candidate) {
  const model::MemoryTable devices = plan::memory_of_devices(plan.workload, candidate);
  report::Table table{.title = "Memory of the devices", .header = {"device"}};
  for (const auto& [name, bytes] : model::categories(devices.front())) table.header.emplace_back(name);
  table.header.emplace_back("total");
  for (std::size_t first = 0; first < devices.size();) {
    std::size_t last = first;
    while (last + 1 < devices.size() && devices[last + 1] == devices[first]) ++last;
    std::vector<std::string> row{std::to_string(first) + (last > first ? "-" + std::to_string(last) : "")};
    for (const auto& [name, bytes] : model::categories(devices[first])) row.push_back(print_bytes(bytes));
    row.push_back(print_bytes(devices[first].total()));
    table.rows.push_back(std::move(row));
    first = last + 1;
  }
  return table;
}

// Adds the timeline of the layout, or a note why there is none.
void draw_step(const plan::Plan& plan, const plan::Layout& layout, report::Run& run) {
  const auto note = [&](const char* text) { run.notes.emplace_back(text); };
  if (!plan::is_simulated(plan.workload, plan.cluster))
    return note("The plan is in closed form only, which has no timeline to draw.");
  if (plan::action_count(plan.workload, layout) > kMostDrawnActions)
    return note("The schedule has too many actions to be drawn.");
  auto simulated = plan::simulate_step(plan.workload, plan.cluster, layout);
  if (!simulated) return note("No run file expresses this layout, so its schedule cannot be drawn.");
  run.program = std::move(simulated->program);
  run.predicted = track_of("simulated", simulated->result);
  note("The timeline is the pipeline of one replica, on the first rank of each stage.");
}

report::Run winners_run(const plan::Plan& plan) {
  const Candidate& winner = plan.result.best.front();
  report::Run run{.name = plan::print_layout(winner.layout)};
  draw_step(plan, winner.layout, run);
  run.tables.push_back(device_table(plan, winner));
  run.configuration = plan::explain(plan.workload, plan.cluster, winner);
  return run;
}

}  // namespace

report::Report plan_report(const plan::Plan& plan) {
  report::Report report{.title = "penstock plan: " + plan::print_question(plan), .runs = {winners_run(plan)}};
  if (plan.result.pareto.size() > 1) report.points.push_back(front_chart(plan));
  report.bars = {memory_chart(plan), time_chart(plan)};
  if (plan.result.candidates > plan.result.fitting()) report.bars.push_back(rejection_chart(plan));
  return report;
}

}  // namespace penstock::cli
