// SPDX-License-Identifier: Apache-2.0
#include "model/layer_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace penstock::model {
namespace {

using Counts = std::vector<std::int64_t>;

double greatest_time(const Counts& counts, const std::vector<double>& beyond) {
  double greatest = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    greatest = std::max(greatest, static_cast<double>(counts[i]) + beyond[i]);
  return greatest;
}

// The least greatest time over all ways to give each stage a layer or more.
double least_possible(std::int64_t layers, const std::vector<double>& beyond, Counts& counts) {
  const std::size_t open = beyond.size() - counts.size();
  if (open == 1) {
    counts.push_back(layers);
    const double time = greatest_time(counts, beyond);
    counts.pop_back();
    return time;
  }
  double least = 1e300;
  for (std::int64_t count = 1; count <= layers - static_cast<std::int64_t>(open) + 1; ++count) {
    counts.push_back(count);
    least = std::min(least, least_possible(layers - count, beyond, counts));
    counts.pop_back();
  }
  return least;
}

std::vector<int> own_devices(std::size_t stages) {
  std::vector<int> devices(stages);
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

TEST(LayerSplit, HasTheLeastGreatestTimeOfAllSplits) {
  for (const std::int64_t layers : {4, 5, 8, 11}) {
    for (const std::size_t stages : {2, 3, 4}) {
      for (const double first : {0.0, 0.1, 1.7}) {
        for (const double last : {0.0, 0.4, 1.5, 2.0, 9.0}) {
          std::vector<double> beyond(stages, 0.0);
          beyond.front() = first;
          beyond.back() += last;
          const Counts counts = level_layers(layers, beyond, own_devices(stages));
          EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), layers);
          EXPECT_GE(std::ranges::min(counts), 1);
          Counts none;
          EXPECT_DOUBLE_EQ(greatest_time(counts, beyond), least_possible(layers, beyond, none));
        }
      }
    }
  }
}

TEST(LayerSplit, GivesTheFirstStagesMoreWhereNothingElseDiffers) {
  EXPECT_EQ(level_layers(9, {0, 0, 0, 0}, {0, 1, 2, 3}), (Counts{3, 2, 2, 2}));
  EXPECT_EQ(level_layers(8, {0, 0, 0, 0}, {0, 1, 2, 3}), (Counts{2, 2, 2, 2}));
}

TEST(LayerSplit, OfEquallyGoodStagesPrefersThoseOfTheLeastLoadedDevice) {
  // In a V the last stage shares device 0 with the first.
  EXPECT_EQ(level_layers(8, {0, 0, 0, 1.2}, {0, 1, 1, 0}), (Counts{2, 3, 2, 1}));
}

TEST(LayerSplit, OfTheLastStageIsKnownInConstantTime) {
  for (std::int64_t layers = 1; layers < 60; layers += 3) {
    for (std::int64_t stages = 1; stages <= layers; stages += 2) {
      for (const double beyond : {0.0, 0.3, 1.0, 2.6, 17.0}) {
        std::vector<double> all(static_cast<std::size_t>(stages), 0.0);
        all.back() = beyond;
        EXPECT_EQ(last_stage_layers(layers, stages, beyond),
                  level_layers(layers, all, own_devices(all.size())).back())
            << layers << " layers, " << stages << " stages, " << beyond;
      }
    }
  }
}

}  // namespace
}  // namespace penstock::model
