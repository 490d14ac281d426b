// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/slow_ranks.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "base/columns.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/plan/rank_times.h"
#include "files/mapped_file.h"
#include "files/run_files.h"
#include "run/costs.h"
#include "run/layer_split.h"
#include "run/replicas.h"
#include "run/resolve/resolve.h"
#include "sim/costs/what_if.h"
#include "sim/result.h"
#include "train/record/rank_times.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

// Times since the last start, or from the summary if metrics.jsonl has no comparison.
std::vector<double> rank_times(const std::string& directory) {
  const std::string metrics = (fs::path(directory) / files::kMetrics).string();
  const std::string summary = (fs::path(directory) / files::kSummary).string();
  RankTimes times;
  std::error_code error;
  if (fs::exists(metrics, error)) times = times_in_metrics(files::MappedFile(metrics).text(), metrics);
  if (times) return *times;
  if (const auto text = files::read_text_if_there(summary, files::kLongestRecord))
    times = times_in_summary(*text, summary);
  if (times) return *times;
  if (!fs::exists(metrics, error) && !fs::exists(summary, error))
    throw InputError(directory + ": has neither " + files::kMetrics + " nor " + files::kSummary);
  throw NoAnswer(directory +
                 ": ranks cannot be compared: the run had one, its ranks do parts of each other's work "
                 "(schedule.exchange, parallel.ep), or it has done fewer than " +
                 std::to_string(train::kRankTimeSteps) + " steps");
}

// A device of the pipeline is as slow as its slowest rank.
std::vector<double> slowness_of_devices(const run::Run& run, const std::vector<double>& times) {
  std::vector<double> slowness(static_cast<std::size_t>(run.devices()), 0.0);
  for (std::size_t rank = 0; rank < times.size(); ++rank) {
    double& device = slowness[run.mesh.coordinates_of(static_cast<std::int64_t>(rank)).pipeline];
    device = std::max(device, times[rank]);
  }
  return slowness;
}

Seconds step_seconds(const run::Run& run, const std::vector<double>& slowness) {
  const sim::AnalyticCosts costs = run::costs_of(run, sim::assumed_hardware());
  std::vector<sim::Override> slower;
  for (std::size_t device = 0; device < slowness.size(); ++device)
    slower.push_back({.device = static_cast<int>(device), .factor = slowness[device]});
  const sim::WhatIf changed(costs, slower, run.devices());
  return sim::evaluate(run.program, changed, sim::kTotals).makespan;
}

std::vector<std::int64_t> counts_of(const run::Run& run) {
  std::vector<std::int64_t> counts;
  for (const model::LayerRange& range : run.layers) counts.push_back(range.count);
  return counts;
}

template <class Values, class Print>
std::string listed(const Values& values, Print&& print) {
  std::vector<std::string> texts;
  for (const auto& value : values) texts.push_back(print(value));
  return join(texts, ", ");
}

}  // namespace

std::string propose_layers(const std::string& directory) {
  const run::Run run =
      run::resolve(run::read_fitted_options((fs::path(directory) / files::kRunFile).string()));
  const std::vector<double> times = rank_times(directory);
  if (std::ssize(times) != run.mesh.world())
    throw InputError(directory + ": it has times of " + counted(std::ssize(times), "rank") +
                     ", its run file " + std::to_string(run.mesh.world()));
  const std::vector<double> slowness = slowness_of_devices(run, times);
  const auto in_words = [](std::int64_t count) { return std::to_string(count); };
  const std::vector<std::int64_t> layers = run::levelled_layers(run, slowness);
  run::Options options = run.options;
  options.parallel.layers = {.list = Integers(layers.begin(), layers.end())};
  const run::Run proposed = run::resolve(std::move(options));
  const double ratio = step_seconds(proposed, slowness) / step_seconds(run, slowness);
  std::string text =
      columns({{"devices", listed(slowness, [](double time) { return number(time, 2); }) +
                               " times the median rank's time for equal work, each its slowest rank"},
               {"layers", listed(counts_of(run), in_words)},
               {"proposed", listed(layers, in_words)},
               {"step", number(ratio, 3) + " of the time, simulated with these ranks"}},
              "ll");
  if (layers == counts_of(run)) return text + "The layers are as good as whole layers can be.\n";
  return text + "parallel.layers = [" + listed(layers, in_words) + "]\n";
}

}  // namespace penstock::cli
