// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <vector>

namespace penstock {
namespace {

TEST(Random, GivesThePublishedNumbersOfSplitMix64) {
  const std::uint64_t published[] = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                     4593380528125082431u, 16408922859458223821u};
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(random_bits(1234567, i), published[i]);
}

TEST(Random, HashesDifferentTextsToDifferentKeys) {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 10000; ++i)
    seen.insert(hash("model.layers." + std::to_string(i) + ".mlp.up_proj.weight"));
  EXPECT_EQ(seen.size(), 10000u);
  EXPECT_NE(stream_key(1, 2), stream_key(2, 1));
}

TEST(Random, DrawsUniformNumbersEvenlyFromZeroToOne) {
  std::vector<int> counts(20);
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const double value = uniform(7, i);
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    ++counts[value * 20];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);  // five standard deviations
}

TEST(Random, DrawsNormalNumbersWithTheRightMoments) {
  constexpr int kDraws = 100000;
  double sum = 0, squares = 0, fourths = 0, neighbours = 0, before = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double value = normal(stream_key(1, hash("w")), i);
    sum += value;
    squares += value * value;
    fourths += std::pow(value, 4);
    neighbours += value * before;
    before = value;
  }
  EXPECT_NEAR(sum / kDraws, 0.0, 0.016);  // five standard errors each
  EXPECT_NEAR(squares / kDraws, 1.0, 0.023);
  EXPECT_NEAR(fourths / kDraws, 3.0, 0.16);
  EXPECT_NEAR(neighbours / kDraws, 0.0, 0.016);
}

TEST(Random, FormsNormalNumbersAsTheLibraryWould) {
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - uniform(3, 2 * i)));
    EXPECT_NEAR(normal(3, i), radius * std::cos(2 * std::numbers::pi * uniform(3, 2 * i + 1)), 1e-14);
  }
}

TEST(Random, FormsNormalNumbersAtTheEndsOfTheRange) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  const double greatest = std::sqrt(2 * 53 * std::numbers::ln2);
  EXPECT_EQ(normal_number(0, 0), 0);  // the radius is 0
  EXPECT_NEAR(normal_number(kMost, 0), greatest, 1e-14);
  EXPECT_NEAR(normal_number(kMost, kMost), greatest, 1e-14);
  for (const std::uint64_t quarter : {1, 2, 3})
    EXPECT_NEAR(normal_number(kMost, quarter << 62), quarter == 2 ? -greatest : 0, 1e-14) << quarter;
}

TEST(Permutation, HitsEveryNumberOnceForEverySize) {
  for (std::uint64_t size = 1; size < 300; ++size) {
    for (std::uint64_t key = 0; key < 3; ++key) {
      const Permutation order(size, key);
      std::vector<bool> seen(size);
      for (std::uint64_t i = 0; i < size; ++i) seen.at(order.at(i)) = true;
      EXPECT_EQ(std::count(seen.begin(), seen.end(), true), size);
    }
  }
}

TEST(Permutation, LeavesNeitherPlacesNorNeighboursTogether) {
  constexpr std::uint64_t kSize = 10000;
  const Permutation order(kSize, 42);
  int fixed = 0, adjacent = 0;
  for (std::uint64_t i = 0; i + 1 < kSize; ++i) {
    fixed += order.at(i) == i;
    adjacent += order.at(i) + 1 == order.at(i + 1);
  }
  EXPECT_LT(fixed, 8);  // both are about Poisson with mean 1 in a true shuffle
  EXPECT_LT(adjacent, 8);
}

TEST(Permutation, NeedsNoMemoryForHugeSizes) {
  const std::uint64_t size = std::uint64_t{1} << 62;
  EXPECT_LT(Permutation(size, 3).at(size - 1), size);
  EXPECT_NE(Permutation(size, 3).at(5), Permutation(size, 4).at(5));
}

}  // namespace
}  // namespace penstock
