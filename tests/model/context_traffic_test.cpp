// SPDX-License-Identifier: Apache-2.0
// What context ranks move is the table of the ways to form attention: in units of an element of the hidden
// states a token and rank.
#include "model/memory/context_traffic.h"

#include <gtest/gtest.h>

namespace penstock::model {
namespace {

// A key head for 8 query heads.
const Shape kPart{.hidden = 4096, .heads = 32, .kv_heads = 4};
constexpr double kRatio = 1.0 / 8, kTokens = 100;

double units(const ContextSplit& split) {
  return context_traffic(kPart, split, kTokens, 2, 4).total() / (kTokens * 4096);
}

TEST(ContextTraffic, IsThatOfTheTableOfModes) {
  for (const std::int64_t c : {2, 4}) {
    const auto ranks = static_cast<double>(c);
    EXPECT_DOUBLE_EQ(units({.ranks = c}), 14 * (ranks - 1));
    EXPECT_DOUBLE_EQ(units({.ranks = c, .gathers = true}), 12 * kRatio * (ranks - 1));
    EXPECT_DOUBLE_EQ(units({.ranks = c, .heads = c}), (8 + 8 * kRatio) * (ranks - 1) / ranks);
  }
}

TEST(ContextTraffic, CarriesAKeyHeadToEachRankThatHasNoneOfItsOwn) {
  EXPECT_DOUBLE_EQ(units({.ranks = 16, .heads = 16}), (8 + 8 * kRatio * 16 / 4) * 15 / 16);
}

// Keys and values are there already: queries, and what comes back.
TEST(ContextTraffic, OfARecomputedForwardIsWithoutKeysAndValues) {
  const auto again = [](const ContextSplit& split) {
    return context_traffic(kPart, split, kTokens, 2, 4).again.total() / (kTokens * 4096);
  };
  EXPECT_DOUBLE_EQ(again({.ranks = 4}), 6 * 3);
  EXPECT_DOUBLE_EQ(again({.ranks = 4, .gathers = true}), 0);
  EXPECT_DOUBLE_EQ(again({.ranks = 4, .heads = 4}), 4 * 3.0 / 4);
  EXPECT_DOUBLE_EQ(again({.ranks = 8, .heads = 4}), again({.ranks = 4, .heads = 4}) + again({.ranks = 2}));
}

TEST(ContextTraffic, OfMixedRanksIsThatOfBothKinds) {
  EXPECT_DOUBLE_EQ(units({.ranks = 8, .heads = 4}), units({.ranks = 4, .heads = 4}) + units({.ranks = 2}));
}

TEST(ContextTraffic, SharesOutHeadsAutomaticallyAsFarAsTheyLast) {
  const Shape few{.hidden = 64, .heads = 4, .kv_heads = 2};
  EXPECT_EQ(automatic_split(few, 4).heads, 4);
  EXPECT_EQ(automatic_split(few, 8).heads, 4);
  EXPECT_EQ(automatic_split(few, 3).heads, 1);
}

}  // namespace
}  // namespace penstock::model
