// SPDX-License-Identifier: Apache-2.0
#include "cli/report/run_report.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/report/memory_series.h"
#include "cli/tell.h"
#include "files/mapped_file.h"
#include "files/run_files.h"
#include "report/mesh/all_ranks.h"
#include "train/record/step_profile.h"

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

// Totals of a result: a row per device.
report::Table device_table(std::string title, const sim::Result& result) {
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

constexpr std::size_t kLongestMetrics = std::size_t{1} << 30;
using Json = nlohmann::json;

struct MetricKey {
  const char* key;
  const char* name;
  const char* unit;
};
constexpr MetricKey kMetrics[] = {
    {"loss", "loss", "nats"},
    {"evaluation_loss", "loss on held-out data", "nats"},
    {"balance_loss", "balance loss of the routers", ""},
    {"expert_load", "greatest expert's load over the mean, worst layer", ""},
    {"attended", "attended keys, of those without documents", ""},
    {"work_of_slots", "greatest work in a slot over the mean", ""},
    {"work_of_micro_batches", "greatest work of a micro-batch over the mean", ""},
    {"work_of_replicas", "greatest work of a replica over the mean", ""},
    {"padding_tokens", "padding", "tokens a step"},
    {"tokens_per_second", "throughput", "tokens/s"}};

// Rows of each layer's experts in one step, over their mean.
std::optional<report::HeatMap> load_of(const Json& entry) {
  const auto rows = entry.find("expert_rows");
  if (rows == entry.end() || !rows->is_array()) return std::nullopt;
  report::HeatMap map{.title = "load of the experts over the mean of their layer",
                      .note = "Step " + entry["step"].dump() + ".",
                      .row_name = "layer",
                      .column_name = "expert"};
  for (const Json& layer : *rows) {
    std::vector<double>& values = map.values.emplace_back();
    double sum = 0;
    if (!layer.is_array() || layer.empty()) return std::nullopt;
    for (const Json& count : layer) {
      if (!count.is_number()) return std::nullopt;
      sum += values.emplace_back(count.get<double>());
    }
    for (double& value : values) value *= static_cast<double>(values.size()) / std::max(sum, 1.0);
  }
  return map;
}

// Adds a curve for each metric in any line, and the last step's load of experts. Lines that are no step's are
// named and left out, but for a last one without an end: a run may still be writing it.
void add_metrics(const std::string& path, report::Run& run) {
  std::vector<report::Metric> metrics;
  for (const MetricKey& metric : kMetrics) metrics.push_back({.name = metric.name, .unit = metric.unit});
  std::optional<report::HeatMap> load;
  const std::string text = files::read_text(path, kLongestMetrics);
  const auto lines = split(text, '\n');
  for (std::size_t number = 0; number < lines.size(); ++number) {
    const Json entry = Json::parse(lines[number], nullptr, false);
    if (!entry.is_object() || !entry.contains("step") || !entry["step"].is_number()) {
      if (number + 1 < lines.size())
        tell(path + ", line " + std::to_string(number + 1) + " is no step's metrics; it is left out");
      continue;
    }
    if (auto newer = load_of(entry)) load = std::move(newer);
    for (std::size_t i = 0; i < metrics.size(); ++i) {
      const auto value = entry.find(kMetrics[i].key);
      if (value == entry.end() || !value->is_number()) continue;
      metrics[i].steps.push_back(entry["step"].get<double>());
      metrics[i].values.push_back(value->get<double>());
    }
  }
  std::erase_if(metrics, [](const report::Metric& metric) { return metric.values.empty(); });
  run.metrics = std::move(metrics);
  if (load) run.heat_maps.push_back(std::move(*load));
}

// Adds the kernels of profiled steps to the steps of the same names.
void add_kernels(const std::string& path, report::Run& run) {
  if (!std::filesystem::exists(path)) return;
  for (const train::NamedProfile& profile :
       train::parse_profiles(files::read_text(path, kLongestMetrics), path)) {
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

// Predicted and measured bytes of one device, a row per category.
report::Table memory_table(std::size_t device, const Json& summary) {
  report::Table table{.title = "Memory of device " + std::to_string(device),
                      .header = {"category", "predicted", "measured"}};
  const Json predicted = summary.value("predicted_bytes", Json::object());
  const Json measured = summary.value("measured_bytes", Json::object());
  const auto cell = [](const Json& bytes, const std::string& key) {
    const auto found = bytes.find(key);
    return found != bytes.end() && found->is_number() ? print_bytes(found->get<Bytes>()) : std::string("-");
  };
  for (const auto& [key, value] : predicted.items()) {
    table.rows.push_back({key, cell(predicted, key), cell(measured, key)});
  }
  return table;
}

// Of a supervised run: why each attempt ended, and what became of the time.
void add_attempts(const std::string& path, report::Run& run) {
  if (!std::filesystem::exists(path)) return;
  const Json told = Json::parse(files::read_text(path, kLongestMetrics), nullptr, false);
  const auto member = [](const Json& object, const char* key) {
    return object.is_object() ? object.value(key, Json()) : Json();
  };
  const auto seconds = [&](const Json& object, const char* key) {
    const Json value = member(object, key);
    return value.is_number() ? print_seconds(value.get<double>()) : std::string("-");
  };
  report::Table table{.title = "Attempts",
                      .header = {"resumed after step", "ended after step", "time", "why"}};
  for (const Json& attempt : member(told, "attempts")) {
    const Json why = member(attempt, "reason");
    const bool good = member(attempt, "exit_code") == 0;
    table.rows.push_back({member(attempt, "resumed_from_step").dump(), member(attempt, "last_step").dump(),
                          seconds(attempt, "seconds"),
                          good              ? "done"
                          : why.is_string() ? why.get<std::string>()
                                            : "-"});
  }
  report::Table use{.title = "Time of all attempts", .header = {"", "time"}};
  for (const auto& [key, name] : {std::pair{"productive_s", "steps, each once"},
                                  std::pair{"recomputed_s", "steps that a later attempt did again"},
                                  std::pair{"waiting_s", "from a failure to its end, and pauses"},
                                  std::pair{"checkpoints_s", "held up by checkpoints and copies"},
                                  std::pair{"starts_s", "starts, until the first step"},
                                  std::pair{"other_s", "evaluations, final files"}})
    use.rows.push_back({name, seconds(member(told, "time"), key)});
  if (table.rows.empty()) return tell(path + " has no attempts; it is left out");
  run.tables.push_back(std::move(table));
  run.tables.push_back(std::move(use));
}

// Shares of the time of copies and collectives during which no rank waited for them; none without these.
void add_hidden_shares(const Json& summary, report::Run& run) {
  report::Table table{.title = "Hidden behind computation",
                      .header = {"in the last step", "share of its time"}};
  for (const auto& [key, name] : {std::pair{"copy_hidden", "copies of records out and back"},
                                  std::pair{"collective_hidden", "collectives of replicas"}}) {
    const auto found = summary.find(key);
    if (found != summary.end() && found->is_number())
      table.rows.push_back({name, percent(found->get<double>())});
  }
  if (!table.rows.empty()) run.tables.push_back(std::move(table));
}

// Of each rank for equal work, over the median rank's.
void add_rank_times(const Json& summary, const mesh::Mesh& mesh, report::Run& run) {
  const auto times = summary.find("rank_times");
  if (times == summary.end() || !times->is_array() || std::ssize(*times) != mesh.world()) return;
  report::Table table{.title = "Time of each rank for equal work", .header = {"rank", "times the median"}};
  for (std::size_t rank = 0; rank < times->size(); ++rank) {
    const Json& time = (*times)[rank];
    table.rows.push_back({std::to_string(rank) + " (" + print_place(mesh, static_cast<int>(rank)) + ")",
                          time.is_number() ? number(time.get<double>(), 2) : std::string("-")});
  }
  run.tables.push_back(std::move(table));
}

report::Run run_of_every_rank(const std::string& directory, const Simulated& simulated) {
  std::vector<report::Track> steps;
  for (const MeasuredStep& step : simulated.measured) {
    if (std::ssize(step.ranks) != simulated.mesh.world())
      throw InputError(directory + ": " + step.label + " is of " + std::to_string(step.ranks.size()) +
                       " ranks, the run of " + std::to_string(simulated.mesh.world()));
    steps.push_back({.label = step.label, .timeline = {step.ranks}});
  }
  return report::run_of_ranks(directory + ", every rank", simulated.program, simulated.mesh,
                              std::move(steps));
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
    const sim::DeviceMemory& memory = result.devices[device].memory;
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
  run.slices = simulated.slices;
  run.tables.push_back(device_table("Simulated", simulated.result));
  for (const MeasuredStep& step : simulated.measured) {
    run.measured.push_back(track_of(step.label, step.result, simulated.predicted));
    const bool sampled = !run.measured.back().memory.empty() && !step.memory.empty();
    if (sampled) run.measured.back().memory = measured_memory(simulated.program, step);
    run.tables.push_back(device_table("Measured, " + step.label, step.result));
  }
  return run;
}

std::vector<report::Run> runs_of_directory(const std::string& directory) {
  const std::filesystem::path folder = directory;
  const auto file = [&](const char* name) { return (folder / name).string(); };
  SimulateFlags flags;
  flags.schedule.file = directory;
  flags.report = "samples wanted";
  const Simulated simulated = simulate_source(flags, {});
  report::Run run = run_of(simulated);
  run.name = directory + " (" + simulated.program.name + ")";
  run.configuration = files::read_text(file(files::kRunFile), kLongestMetrics);
  add_metrics(file(files::kMetrics), run);
  add_kernels(file(files::kProfile), run);
  const Json summary = Json::parse(files::read_text(file(files::kSummary), kLongestMetrics), nullptr, false);
  if (!summary.is_object()) throw InputError(file(files::kSummary) + ": is no summary of a run");
  const Json devices = summary.value("devices", Json::array());
  for (std::size_t device = 0; device < devices.size(); ++device) {
    run.tables.push_back(memory_table(device, devices[device]));
  }
  add_hidden_shares(summary, run);
  add_rank_times(summary, simulated.mesh, run);
  add_attempts(file(files::kAttempts), run);
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

}  // namespace penstock::cli
