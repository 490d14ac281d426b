// SPDX-License-Identifier: Apache-2.0
#include "model/memory/offload_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace penstock::model {
namespace {

// By trying all sets.
Bytes best_subset(const std::vector<Bytes>& sizes, Bytes limit) {
  Bytes best = 0;
  for (unsigned set = 0; set < 1u << sizes.size(); ++set) {
    Bytes sum = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) sum += set >> i & 1 ? sizes[i] : 0;
    if (sum <= limit) best = std::max(best, sum);
  }
  return best;
}

std::vector<Bytes> random_sizes(std::mt19937& random, int most, Bytes unit) {
  std::vector<Bytes> sizes(1 + random() % most);
  for (Bytes& size : sizes) size = static_cast<Bytes>(random() % 12) * unit;
  return sizes;
}

TEST(ChooseLeaving, TakesWholeTensorsAsNearAsAnySetAndCutsAtMostOne) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 2000; ++trial) {
    const std::vector<Bytes> sizes = random_sizes(random, 10, trial % 2 ? 64 : 7);
    const Bytes all = std::accumulate(sizes.begin(), sizes.end(), Bytes{0});
    const Bytes wanted = static_cast<Bytes>(random() % static_cast<unsigned>(all + 1));
    const std::vector<Bytes> chosen = choose_leaving(sizes, wanted);
    Bytes whole = 0;
    int cut = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      ASSERT_LE(chosen[i], sizes[i]);
      if (chosen[i] == sizes[i]) whole += sizes[i];
      cut += chosen[i] > 0 && chosen[i] < sizes[i];
    }
    EXPECT_EQ(std::accumulate(chosen.begin(), chosen.end(), Bytes{0}), wanted);
    EXPECT_EQ(whole, best_subset(sizes, wanted));
    EXPECT_EQ(cut, whole == wanted ? 0 : 1);
  }
}

TEST(ChooseLeaving, SizesWithoutACommonMeasureAreTakenLargestFirst) {
  const std::vector<Bytes> sizes{7'000'003, 5'000'011, 3'000'017, 1};
  for (const Bytes wanted : {Bytes{0}, Bytes{1}, Bytes{6'000'000}, Bytes{15'000'032}}) {
    const std::vector<Bytes> chosen = choose_leaving(sizes, wanted);
    EXPECT_EQ(std::accumulate(chosen.begin(), chosen.end(), Bytes{0}), wanted);
    int cut = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) cut += chosen[i] > 0 && chosen[i] < sizes[i];
    EXPECT_LE(cut, 1);
  }
}

TEST(LeavingBytes, AreTheShareInWholeLinesAndEverythingForAShareOfOne) {
  EXPECT_EQ(leaving_bytes(1000, 0), 0);
  EXPECT_EQ(leaving_bytes(1000, 1), 1000);
  EXPECT_EQ(leaving_bytes(6400, 0.5), 3200);
  EXPECT_EQ(leaving_bytes(1000, 0.999), 1000);
  for (const double share : {0.1, 0.25, 0.7})
    EXPECT_NEAR(leaving_bytes(1 << 20, share), share * (1 << 20), 32);
}

}  // namespace
}  // namespace penstock::model
