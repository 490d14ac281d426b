// SPDX-License-Identifier: Apache-2.0
// Writes the pages that the browser test opens: make_reports DIRECTORY.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "report/example_reports.h"
#include "report/html.h"
#include "report/mesh/all_ranks.h"
#include "report/trace.h"

namespace {

using namespace penstock::report;

const std::string kMarkup =
    "</script><script>window.hacked=1</script><img src=x onerror=\"window.hacked=1\">&amp;'\"`${1}<!-- ]]>";

Report small_report() {
  Report report{"slimpipe on 4 devices", {example_run("slimpipe", example_program("slimpipe", 4, 2, 4), 3)}};
  report.runs[0].opens_with = 2;
  return report;
}

// 16 devices x 2 micro-batches x 312 slices x 2 = 19,968 actions, predicted and measured.
Report large_report() {
  return {"20,000 actions", {example_run("large", example_program("slimpipe", 16, 2, 312), 1)}};
}

Report several_runs() {
  Report report{"Three schedules", {}};
  report.runs.push_back(example_run("slimpipe", example_program("slimpipe", 4, 2, 4), 1));
  report.runs.push_back(example_run("1f1b", example_program("1f1b", 4, 8, 1), 0));
  report.runs.push_back(example_run("gpipe", example_program("gpipe", 4, 8, 1), 0));
  return report;
}

// More micro-batches, and more bars of idle time, than a function of a browser has arguments; no action.
Report many_report() {
  constexpr int kDevices = 2000, kCauses = 64;
  Run run{.name = "many", .program = {}};
  run.program.devices.resize(kDevices);
  run.program.slices.assign(200'000, 1);
  Track& predicted = run.predicted.emplace();
  predicted.label = "predicted";
  predicted.timeline.devices.resize(kDevices);
  predicted.idle.assign(kCauses, {"cause", std::vector<penstock::Seconds>(kDevices)});
  return {"200,000 micro-batches", {run}};
}

// A pipeline of two devices beside all ranks of its mesh.
Report ranks_report() {
  const penstock::mesh::Mesh mesh{.tensor = 2, .data = 2, .pipeline = 2};
  const auto program = example_program("1f1b", 2, 4, 1);
  Report report{"ranks", {example_run("run", program, 1)}};
  const auto all = program_of_ranks(program, mesh);
  report.runs.push_back(
      run_of_ranks("every rank", program, mesh,
                   {{.label = "step 10", .timeline = PaperClock(all, example_seconds(0.3)).run()}}));
  return report;
}

// Every text of a report is markup.
Report hostile_report() {
  Report report{kMarkup, {example_run(kMarkup, example_program("slimpipe", 2, 1, 2), 2)}};
  Run& run = report.runs[0];
  run.program.name = run.predicted->label = run.measured[0].label = run.measured[1].label = kMarkup;
  for (Track* track : {&*run.predicted, &run.measured[0], &run.measured[1]}) {
    for (auto& memory : track->memory) memory.categories[0] = kMarkup;
    track->idle[0].cause = kMarkup;
  }
  run.metrics[0].name = run.metrics[0].unit = kMarkup;
  run.tables = {{kMarkup, {kMarkup, kMarkup}, {{kMarkup, kMarkup}}}};
  run.configuration = kMarkup + "\n" + kMarkup;
  run.notes = {kMarkup};
  run.rows = {kMarkup, kMarkup};
  run.groups = {{kMarkup, {0, 1}}};
  return report;
}

// Two schedules of one model, whose losses are the same, over thousands of steps.
Report steps_report() {
  Report report{"One loss", {}};
  for (const char* name : {"gpipe", "1f1b"}) {
    Run run = example_run(name, example_program(name, 2, 2, 1), 0);
    run.metrics = {{"loss", "nats", {1, 1500, 3000}, {3, 2, 1}}};
    run.tables = {{"Simulated", {"device", "busy"}, {{"0", "1 min 40 s"}, {"1", "1 h 42 min"}}}};
    report.runs.push_back(run);
  }
  return report;
}

// Bars and points before the timeline, as a plan has them.
Report charts_report() {
  Report report{"Charts", {example_run("slimpipe", example_program("slimpipe", 4, 2, 4), 0)}};
  report.bars = {{"Memory by category",
                  "On the fullest device.",
                  Unit::Bytes,
                  {"t8 p4 d4 slimpipe n8 v2 balanced offload 13% vocab levelled", kMarkup},
                  {{"weights", {3e9, 2e9}}, {"activations", {5e9, 9e9}}, {kMarkup, {1e9, 0}}}},
                 {"Rejected", "", Unit::Count, {"memory", "batch"}, {{"candidates", {5571840, 12}}}},
                 {"Time by term", "", Unit::Seconds, {"step"}, {}}};
  for (int term = 0; term < 15; ++term)
    report.bars.back().parts.push_back({"term " + std::to_string(term), {1}});
  report.points = {{"Least time by memory",
                    "One for each amount.",
                    "memory",
                    "seconds of a step",
                    Unit::Bytes,
                    Unit::Seconds,
                    {{"small", 2e10, 9.5}, {kMarkup, 4e10, 8.25}, {"large", 7e10, 8}}},
                   {"Predicted beside published",
                    "Three rows.",
                    "published",
                    "predicted",
                    Unit::Seconds,
                    Unit::Seconds,
                    {{"as published", 10, 10}, {"too fast", 100, 10}, {"too slow", 1, 10}},
                    true}};
  return report;
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: make_reports DIRECTORY\n", stderr);
    return 2;
  }
  const std::filesystem::path directory = arguments[1];
  std::filesystem::create_directories(directory);
  write(directory / "small.html", html_page(small_report()));
  write(directory / "large.html", html_page(large_report()));
  write(directory / "shares.html", html_page(large_report(), {.detailed_ops = 0}));
  write(directory / "several.html", html_page(several_runs()));
  write(directory / "hostile.html", html_page(hostile_report()));
  write(directory / "many.html", html_page(many_report()));
  write(directory / "ranks.html", html_page(ranks_report()));
  write(directory / "steps.html", html_page(steps_report()));
  write(directory / "charts.html", html_page(charts_report()));
  write(directory / "empty.html", html_page({"Nothing yet", {}}));
  write(directory / "small.trace.json", chrome_trace(small_report()));
}
