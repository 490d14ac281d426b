// SPDX-License-Identifier: Apache-2.0
#include "run/layer_split.h"

#include <algorithm>

#include "base/text.h"
#include "model/layer_split.h"
#include "run/costs.h"
#include "run/layer_policies.h"

namespace penstock::run {
namespace {

// Time of embedding and output layer, in units of a layer's time.
struct Ends {
  double embedding = 0;
  double output = 0;
};

// Uses the first micro-batch, and the mean time of all layers as the unit.
Ends weigh_ends(const Run& run) {
  sim::Work work = work_of(run);
  const model::LayerRange all{0, run.shape().layers};
  work.layers = {all, all, all};
  work.devices.clear();
  work.held.clear();
  work.slices.resize(1);
  const sim::AnalyticCosts costs(std::move(work), sim::assumed_hardware());
  const auto seconds = [&](int stage) {
    Seconds sum = 0;
    const auto slices = static_cast<int>(run.slices.front().size());
    for (int slice = 0; slice < slices; ++slice) {
      for (const schedule::OpKind kind : {schedule::OpKind::Forward, schedule::OpKind::Backward})
        sum += costs.seconds(stage, 0, {.key = schedule::make_key(stage, 0, slice), .kind = kind});
    }
    return sum;
  };
  const Seconds layer = seconds(1) / static_cast<double>(all.count);
  return {(seconds(0) - seconds(1)) / layer, (seconds(2) - seconds(1)) / layer};
}

std::vector<model::LayerRange> even(const Run& run, const Integers& wanted = {}) {
  return model::split_layers(run.shape().layers, run.schedule.stages, wanted);
}

std::vector<std::int64_t> levelled(const Run& run, const Ends& ends, const std::vector<double>& slowness) {
  std::vector<double> beyond(run.layers.size(), 0.0);
  beyond.front() += ends.embedding;
  beyond.back() += ends.output;
  return model::level_layers(run.shape().layers, beyond, run.device_of_stage, slowness);
}

}  // namespace

std::vector<std::int64_t> levelled_layers(const Run& run, const std::vector<double>& slowness) {
  return levelled(run, weigh_ends(run), slowness);
}

void split_layers(Run& run) {
  const IntegersOrWord& wanted = run.options.parallel.layers;
  run.layers = even(run, wanted.list);
  run.notes.erase(Topic::Layers);
  run.keep = layer_policies(run.options.memory, run.layers, run.is_sliced());
  const bool automatic = wanted.list.empty() && wanted.word.empty();
  if (!automatic || run.stages() == 1 || run.exchange != schedule::ExchangeMode::Off) return;
  const Ends ends = weigh_ends(run);
  const std::vector<model::LayerRange> level = even(run, levelled(run, ends, {}));
  if (level == run.layers) return;
  run.layers = level;
  run.keep = layer_policies(run.options.memory, run.layers, run.is_sliced());
  std::vector<std::string> counts;
  for (const model::LayerRange& range : run.layers) counts.push_back(std::to_string(range.count));
  run.add_note(Topic::Layers, join(counts, ", ") + ": the output layer takes as long as " +
                                  number(ends.output, 1) +
                                  " layers; parallel.layers = \"even\" splits them evenly");
}

}  // namespace penstock::run
