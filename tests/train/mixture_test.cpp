// SPDX-License-Identifier: Apache-2.0
#include "train/data/mixture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/random.h"

namespace penstock::train {
namespace {

TEST(Mixture, OwesNoSourceMoreThanAFewDrawsAtAnyTime) {
  for (std::uint64_t round = 0; round < 20; ++round) {
    std::vector<double> shares;
    for (std::uint64_t i = 0; i <= round % 6; ++i) shares.push_back(0.05 + uniform(round, i));
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    const Mixture mixture(shares);
    std::vector<double> drawn(shares.size());
    for (std::int64_t index = 0; index < 3 * Mixture::kPeriod; ++index) {
      drawn[mixture.at(index).source] += 1;
      for (std::size_t i = 0; i < shares.size(); ++i) {
        const double owed = shares[i] / sum * static_cast<double>(index + 1) - drawn[i];
        ASSERT_LT(std::fabs(owed), 4.0 + static_cast<double>(shares.size())) << round << " " << index;
      }
    }
  }
}

TEST(Mixture, RanksTheDrawsOfEachSourceWithoutAGap) {
  const Mixture mixture(std::vector<double>{969, 30, 1});
  std::vector<std::int64_t> next(3);
  for (std::int64_t index = 0; index < 5 * Mixture::kPeriod / 2; ++index) {
    const Mixture::Draw draw = mixture.at(index);
    ASSERT_EQ(draw.rank, next[draw.source]++);
  }
  EXPECT_GE(next[2], 24);
}

TEST(Mixture, OfOneSourceIsThatSource) {
  const Mixture mixture(std::vector<double>{0.3});
  for (const std::int64_t index : {0l, 1l, 9999l, 10000l, 123456789l})
    EXPECT_EQ(mixture.at(index).rank, index);
}

}  // namespace
}  // namespace penstock::train
