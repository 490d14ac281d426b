// SPDX-License-Identifier: Apache-2.0
#include "model/slice_halves.h"

#include <gtest/gtest.h>

namespace penstock::model {
namespace {

TEST(SliceHalves, CoverEveryTokenOnceHoweverTheyAreCut) {
  for (const Tokens tokens : {7, 8, 13, 24}) {
    for (const int n : {1, 2, 5, 7}) {
      const auto slices = cut_into_slices(tokens, n);
      for (int cut = 0; cut <= 2 * n; ++cut) {
        std::vector<int> times(static_cast<std::size_t>(tokens));
        for (const auto& [first, count] : {std::pair{0, cut}, {cut, 2 * n - cut}}) {
          for (const SlicePart& part : parts_of_halves(slices, first, count)) {
            EXPECT_GT(part.length, 0);
            const Tokens begin = slices[part.slice].begin + part.begin;
            for (Tokens t = begin; t < begin + part.length; ++t) ++times[t];
          }
        }
        for (const int count : times) EXPECT_EQ(count, 1) << tokens << " " << n << " " << cut;
      }
    }
  }
}

TEST(SliceHalves, OfOneSliceAreOnePart) {
  const auto slices = cut_into_slices(12, 2);
  EXPECT_EQ(parts_of_halves(slices, 0, 2), (std::vector<SlicePart>{{0, 0, 6}}));
  EXPECT_EQ(parts_of_halves(slices, 1, 2), (std::vector<SlicePart>{{0, 3, 3}, {1, 0, 3}}));
  EXPECT_EQ(parts_of_halves(slices, 3, 1), (std::vector<SlicePart>{{1, 3, 3}}));
  EXPECT_TRUE(parts_of_halves(slices, 2, 0).empty());
}

TEST(SliceHalves, GiveTheOddTokenToTheFirst) {
  EXPECT_EQ(part_in_halves(3, 5, 6, 1), (SlicePart{3, 0, 3}));
  EXPECT_EQ(part_in_halves(3, 5, 7, 1), (SlicePart{3, 3, 2}));
  EXPECT_EQ(part_in_halves(0, 1, 1, 1).length, 0) << "of a single token";
  EXPECT_EQ(part_in_halves(1, 5, 6, 4).length, 0) << "not in these halves";
}

}  // namespace
}  // namespace penstock::model
