// SPDX-License-Identifier: Apache-2.0
#include "cli/report/run_record.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "files/strict_json.h"
#include "train/record/step_lines.h"

namespace penstock::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;  // categories of memory keep the order of the file

struct MetricKey {
  const char* key;
  const char* name;
  const char* unit;
  bool of_every_step = false;  // null means not finite, not absent
};
constexpr MetricKey kMetrics[] = {
    {"loss", "loss", "nats", true},
    {"evaluation_loss", "loss on held-out data", "nats"},
    {"balance_loss", "balance loss of the routers", ""},
    {"expert_load", "greatest expert's load over the mean, worst layer", ""},
    {"attended", "attended keys, of those without documents", ""},
    {"work_of_slots", "greatest work in a slot over the mean", ""},
    {"work_of_micro_batches", "greatest work of a micro-batch over the mean", ""},
    {"work_of_replicas", "greatest work of a replica over the mean", ""},
    {"padding_tokens", "padding", "tokens a step"},
    {"tokens_per_second", "throughput", "tokens/s"}};

// Rows of each layer's experts in one step, relative to the layer's mean.
std::optional<report::HeatMap> load_of(const OrderedJson& entry) {
  const auto rows = entry.find("expert_rows");
  if (rows == entry.end() || !rows->is_array()) return std::nullopt;
  report::HeatMap map{.title = "load of the experts over the mean of their layer",
                      .note = "Step " + entry["step"].dump() + ".",
                      .row_name = "layer",
                      .column_name = "expert"};
  for (const OrderedJson& layer : *rows) {
    std::vector<double>& values = map.values.emplace_back();
    double sum = 0;
    if (!layer.is_array() || layer.empty()) return std::nullopt;
    for (const OrderedJson& count : layer) {
      if (!count.is_number()) return std::nullopt;
      sum += values.emplace_back(count.get<double>());
    }
    for (double& value : values) value *= static_cast<double>(values.size()) / std::max(sum, 1.0);
  }
  return map;
}

void add_values(const OrderedJson& entry, std::vector<report::Metric>& metrics) {
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const auto value = entry.find(kMetrics[i].key);
    if (value == entry.end()) continue;
    const bool gap = value->is_null() && kMetrics[i].of_every_step;
    if (!value->is_number() && !gap) continue;
    metrics[i].steps.push_back(entry["step"].get<double>());
    metrics[i].values.push_back(gap ? std::numeric_limits<double>::quiet_NaN() : value->get<double>());
  }
}

// Returns a member; null if `object` is not an object or lacks it.
OrderedJson member(const OrderedJson& object, const char* key) {
  return object.is_object() ? object.value(key, OrderedJson()) : OrderedJson();
}

// Predicted and measured bytes of one device, a row per category.
report::Table memory_table(std::size_t device, const OrderedJson& summary) {
  report::Table table{.title = "Memory of device " + std::to_string(device),
                      .header = {"category", "predicted", "measured"}};
  const OrderedJson predicted = member(summary, "predicted_bytes"),
                    measured = member(summary, "measured_bytes");
  const auto cell = [](const OrderedJson& bytes, const std::string& key) {
    const OrderedJson found = member(bytes, key.c_str());
    return found.is_number_integer() ? print_bytes(found.get<Bytes>()) : std::string("-");
  };
  if (!predicted.is_object()) return table;
  for (const auto& [key, value] : predicted.items())
    table.rows.push_back({key, cell(predicted, key), cell(measured, key)});
  return table;
}

// Shares of the time of copies and collectives during which no rank waited. Adds no table without them.
void add_hidden_shares(const OrderedJson& summary, report::Run& run) {
  report::Table table{.title = "Hidden behind computation",
                      .header = {"in the last step", "share of its time"}};
  for (const auto& [key, name] : {std::pair{"copy_hidden", "copies of records out and back"},
                                  std::pair{"collective_hidden", "collectives of replicas"}}) {
    const OrderedJson found = member(summary, key);
    if (found.is_number()) table.rows.push_back({name, percent(found.get<double>())});
  }
  if (!table.rows.empty()) run.tables.push_back(std::move(table));
}

// Time of each rank for equal work, relative to the median rank.
void add_rank_times(const OrderedJson& summary, report::Run& run) {
  const OrderedJson times = member(summary, "rank_times");
  if (!times.is_array() || times.empty()) return;
  report::Table table{.title = "Time of each rank for equal work", .header = {"rank", "times the median"}};
  for (std::size_t rank = 0; rank < times.size(); ++rank) {
    const std::string time =
        times[rank].is_number() ? number(times[rank].get<double>(), 2) : std::string("-");
    table.rows.push_back({std::to_string(rank), time});
  }
  run.tables.push_back(std::move(table));
}

std::string seconds_cell(const OrderedJson& object, const char* key) {
  const OrderedJson value = member(object, key);
  return value.is_number() ? print_seconds(value.get<double>()) : std::string("-");
}

std::string integer_cell(const OrderedJson& object, const char* key) {
  const OrderedJson value = member(object, key);
  return value.is_number_integer() ? value.dump() : std::string("-");
}

std::string why_of(const OrderedJson& attempt) {
  if (member(attempt, "exit_code") == 0) return "done";
  const OrderedJson why = member(attempt, "reason");
  return why.is_string() ? why.get<std::string>() : "-";
}

report::Table table_of_attempts(const OrderedJson& attempts) {
  report::Table table{.title = "Attempts",
                      .header = {"resumed after step", "ended after step", "time", "why"}};
  for (const OrderedJson& attempt : attempts)
    table.rows.push_back({integer_cell(attempt, "resumed_from_step"), integer_cell(attempt, "last_step"),
                          seconds_cell(attempt, "seconds"), why_of(attempt)});
  return table;
}

report::Table table_of_recoveries(const OrderedJson& recoveries) {
  report::Table table{.title = "Recoveries",
                      .header = {"noticed in", "restarted in", "loaded in", "first step"}};
  for (const OrderedJson& recovery : recoveries)
    table.rows.push_back({seconds_cell(recovery, "detect_s"), seconds_cell(recovery, "restart_s"),
                          seconds_cell(recovery, "load_s"), seconds_cell(recovery, "first_step_s")});
  return table;
}

report::Table table_of_time(const OrderedJson& time) {
  report::Table table{.title = "Time of all attempts", .header = {"", "time"}};
  for (const auto& [key, name] : {std::pair{"productive_s", "steps, each once"},
                                  std::pair{"recomputed_s", "steps that a later attempt did again"},
                                  std::pair{"waiting_s", "from a failure to its end, and pauses"},
                                  std::pair{"checkpoints_s", "held up by checkpoints and copies"},
                                  std::pair{"starts_s", "starts, until the first step"},
                                  std::pair{"other_s", "evaluations, final files"}})
    table.rows.push_back({name, seconds_cell(time, key)});
  return table;
}

}  // namespace

std::string add_metrics(std::string_view text, const std::string& path, report::Run& run) {
  std::vector<report::Metric> metrics;
  for (const MetricKey& metric : kMetrics) metrics.push_back({.name = metric.name, .unit = metric.unit});
  std::optional<report::HeatMap> load;
  const train::StepLines lines = train::lines_of_steps(text, path);
  for (const auto& [step, line] : lines.of_steps) {
    const OrderedJson entry = files::parse_or_discard<OrderedJson>(line);
    if (auto newer = load_of(entry)) load = std::move(newer);
    add_values(entry, metrics);
  }
  std::erase_if(metrics, [&](const report::Metric& metric) {
    if (std::ranges::any_of(metric.values, [](double value) { return std::isfinite(value); })) return false;
    if (!metric.values.empty()) run.notes.push_back("No " + metric.name + " is finite.");
    return true;
  });
  run.metrics = std::move(metrics);
  if (load) run.heat_maps.push_back(std::move(*load));
  return lines.remark;
}

void add_summary(std::string_view text, const std::string& path, report::Run& run) {
  const OrderedJson summary = files::parse_or_discard<OrderedJson>(text);
  if (!summary.is_object()) throw InputError(path + ": is not a summary of a run");
  const OrderedJson devices = member(summary, "devices");
  for (std::size_t device = 0; devices.is_array() && device < devices.size(); ++device)
    run.tables.push_back(memory_table(device, devices[device]));
  add_hidden_shares(summary, run);
  add_rank_times(summary, run);
}

bool add_attempts(std::string_view text, report::Run& run) {
  const OrderedJson told = files::parse_or_discard<OrderedJson>(text);
  const OrderedJson attempts = member(told, "attempts");
  if (!attempts.is_array() || attempts.empty()) return false;
  run.tables.push_back(table_of_attempts(attempts));
  const OrderedJson recoveries = member(told, "recoveries");
  if (recoveries.is_array() && !recoveries.empty()) run.tables.push_back(table_of_recoveries(recoveries));
  run.tables.push_back(table_of_time(member(told, "time")));
  return true;
}

}  // namespace penstock::cli
