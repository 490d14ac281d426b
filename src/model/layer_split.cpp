// SPDX-License-Identifier: Apache-2.0
#include "model/layer_split.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace penstock::model {

std::vector<std::int64_t> level_layers(std::int64_t layers, const std::vector<double>& beyond,
                                       const std::vector<int>& devices, const std::vector<double>& slowness) {
  const auto stages = static_cast<int>(beyond.size());
  std::vector<std::int64_t> counts(beyond.size(), 1);
  std::vector<double> of_device(1 + std::ranges::max(devices), 0.0);
  const auto layer_of = [&](int stage) { return slowness.empty() ? 1.0 : slowness[devices[stage]]; };
  const auto time_of = [&](int stage, std::int64_t count) {
    return (static_cast<double>(count) + beyond[stage]) * layer_of(stage);
  };
  for (int stage = 0; stage < stages; ++stage) of_device[devices[stage]] += time_of(stage, 1);
  std::set<std::pair<double, int>> next;  // a stage's time with one more layer
  for (int stage = 0; stage < stages; ++stage) next.emplace(time_of(stage, 2), stage);
  for (std::int64_t layer = stages; layer < layers; ++layer) {
    auto chosen = next.begin();
    for (auto other = chosen; other != next.end() && other->first == chosen->first; ++other) {
      if (of_device[devices[other->second]] < of_device[devices[chosen->second]]) chosen = other;
    }
    const int stage = chosen->second;
    ++counts[stage];
    of_device[devices[stage]] += layer_of(stage);
    next.erase(chosen);
    next.emplace(time_of(stage, counts[stage] + 1), stage);
  }
  return counts;
}

std::int64_t last_stage_layers(std::int64_t layers, std::int64_t stages, double beyond) {
  if (stages == 1) return layers;
  const auto others = static_cast<double>(stages - 1);
  // The last stage gets its k-th layer only when the other stages are as full.
  const auto gets = [&](std::int64_t k) {
    const double full = std::max(1.0, std::floor(static_cast<double>(k) + beyond));
    return static_cast<double>(k) + others * full <= static_cast<double>(layers);
  };
  const double level = (static_cast<double>(layers) + beyond) / static_cast<double>(stages);
  std::int64_t count = std::max<std::int64_t>(1, static_cast<std::int64_t>(level - beyond) - 1);
  while (count > 1 && !gets(count)) --count;
  while (gets(count + 1)) ++count;
  return count;
}

}  // namespace penstock::model
