// SPDX-License-Identifier: Apache-2.0
#include "cli/report/run_report.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/report/memory_series.h"
#include "cli/report/run_record.h"
#include "cli/tell.h"
#include "files/mapped_file.h"
#include "files/run_files.h"
#include "report/mesh/all_ranks.h"
#include "train/record/named_profile.h"

namespace penstock::cli {
namespace {

struct NamedCause {
  const char* name;
  Seconds sim::IdleCauses::*seconds;
};
constexpr NamedCause kCauses[] = {{"ramp", &sim::IdleCauses::ramp},
                                  {"transfer wait", &sim::IdleCauses::transfer},
                                  {"copy wait", &sim::IdleCauses::copy},
                                  {"imbalance", &sim::IdleCauses::imbalance},
                                  {"dependency", &sim::IdleCauses::dependency}};

// Totals of a result, one row per device.
report::Table result_table(std::string title, const sim::Result& result) {
  report::Table table{.title = std::move(title),
                      .header = {"device", "busy", "idle", "in flight", "until input", "peak saved"}};
  for (std::size_t device = 0; device < result.devices.size(); ++device) {
    const sim::DeviceResult& row = result.devices[device];
    const double busy = result.makespan > 0 ? row.time.busy / result.makespan : 0.0;
    table.rows.push_back({std::to_string(device), print_seconds(row.time.busy), percent(1.0 - busy),
                          std::to_string(row.in_flight.peak), std::to_string(row.in_flight.peak_until_input),
                          print_bytes(row.memory.peak)});
  }
  return table;
}

// Adds the kernels of profiled steps to the measured steps of the same number.
void add_kernels(const std::string& path, report::Run& run) {
  if (!std::filesystem::exists(path)) return;
  for (const train::NamedProfile& profile :
       train::parse_profiles(files::read_text(path, files::kLongestRecord), path)) {
    const std::string label = "step " + std::to_string(profile.step);
    const auto track = std::ranges::find(run.measured, label, &report::Track::label);
    if (track == run.measured.end() || profile.devices.size() != run.program.devices.size()) continue;
    for (const auto& calls : profile.devices) {
      auto& spans = track->kernels.emplace_back();
      for (const train::NamedCall& call : calls)
        spans.push_back({call.kernel, call.block, call.start, call.end});
    }
  }
}

// Adds what a run writes beside its timeline. One that has `ended` has a summary.
void add_record(const std::string& directory, bool ended, report::Run& run) {
  const std::filesystem::path folder = directory;
  const auto file = [&](const char* name) { return (folder / name).string(); };
  run.configuration = files::read_text(file(files::kRunFile), files::kLongestRecord);
  const files::MappedFile metrics(file(files::kMetrics));
  if (const std::string remark = add_metrics(metrics.text(), file(files::kMetrics), run); !remark.empty())
    tell(remark);
  if (run.metrics.empty()) tell(file(files::kMetrics) + " has no step's metrics");
  if (ended || files::is_there(file(files::kSummary)))
    add_summary(files::read_text(file(files::kSummary), files::kLongestRecord), file(files::kSummary), run);
  const auto attempts = files::read_text_if_there(file(files::kAttempts), files::kLongestRecord);
  if (attempts && !add_attempts(*attempts, run))
    tell(file(files::kAttempts) + " has no attempts; it is left out");
}

report::Run run_of_every_rank(const std::string& directory, const Simulated& simulated) {
  std::vector<report::Track> steps;
  for (const MeasuredStep& step : simulated.measured) {
    if (std::ssize(step.ranks) != simulated.mesh.world())
      throw InputError(directory + ": " + step.label + " has " + std::to_string(step.ranks.size()) +
                       " ranks, the run " + std::to_string(simulated.mesh.world()));
    steps.push_back({.label = step.label, .timeline = {step.ranks}});
  }
  report::Run run =
      report::run_of_ranks(directory + ", every rank", simulated.program, simulated.mesh, std::move(steps));
  run.opens_with = simulated.typical;
  return run;
}

}  // namespace

report::Track track_of(std::string label, const sim::Result& result, const model::MemoryTable& standing) {
  report::Track track{.label = std::move(label), .timeline = result.timeline};
  for (const NamedCause& cause : kCauses) {
    track.idle.push_back({.cause = cause.name});
    for (const sim::DeviceResult& device : result.devices) {
      track.idle.back().devices.push_back(device.time.idle.*cause.seconds);
    }
  }
  for (std::size_t device = 0; device < result.devices.size(); ++device) {
    const sim::MemoryUse& memory = result.devices[device].memory;
    if (memory.samples.empty()) continue;
    track.memory.push_back(predicted_series(memory, standing.empty() ? nullptr : &standing[device]));
  }
  if (track.memory.size() != result.devices.size()) track.memory.clear();
  return track;
}

report::Run run_of(const Simulated& simulated) {
  report::Run run{.name = simulated.program.name, .program = simulated.program};
  run.predicted =
      track_of(simulated.measured.empty() ? "predicted" : "simulated", simulated.result, simulated.predicted);
  run.opens_with = simulated.typical;
  run.slices = simulated.slices;
  run.tables.push_back(result_table("Simulated", simulated.result));
  for (const MeasuredStep& step : simulated.measured) {
    run.measured.push_back(track_of(step.label, step.result, simulated.predicted));
    const bool sampled = !run.measured.back().memory.empty() && !step.memory.empty();
    if (sampled) run.measured.back().memory = measured_memory(simulated.program, step);
    run.tables.push_back(result_table("Measured, " + step.label, step.result));
  }
  return run;
}

std::vector<report::Run> runs_of_directory(const std::string& directory) {
  SimulateFlags flags;
  flags.schedule.file = directory;
  flags.memory_samples = true;
  const Simulated simulated = simulate_source(flags, {});
  report::Run run = run_of(simulated);
  run.name = directory + " (" + simulated.program.name + ")";
  add_record(directory, /*ended=*/true, run);
  add_kernels((std::filesystem::path(directory) / files::kProfile).string(), run);
  run.notes.push_back("The simulation takes the action times of " +
                      simulated.measured[simulated.typical].label +
                      " as measured; where they differ, overlap and waiting differ.");
  std::vector<report::Run> runs{std::move(run)};
  if (!simulated.measured.front().ranks.empty()) {
    runs.front().notes.push_back("Device 0, 1, ... are the ranks of the first of " +
                                 std::to_string(simulated.mesh.ranks_per_stage()) + " pipelines.");
    runs.push_back(run_of_every_rank(directory, simulated));
  }
  return runs;
}

report::Run run_without_timeline(const std::string& directory, const std::string& why) {
  report::Run run{.name = directory};
  add_record(directory, /*ended=*/false, run);
  run.notes.push_back("There is no timeline: " + why + ".");
  return run;
}

}  // namespace penstock::cli
