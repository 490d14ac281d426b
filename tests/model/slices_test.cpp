// SPDX-License-Identifier: Apache-2.0
#include "model/slices.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"

namespace penstock::model {
namespace {

TEST(Slices, CoverEveryTokenOnceInOrderAndDifferByAtMostOneUnit) {
  for (const Tokens unit : {1, 4}) {
    for (Tokens tokens = 1; tokens <= 40; ++tokens) {
      const auto most = static_cast<int>((tokens + unit - 1) / unit);
      for (int n = 1; n <= most; ++n) {
        Tokens next = 0;
        Tokens least = tokens;
        Tokens greatest = 0;
        for (const TokenRange& range : cut_into_slices(tokens, n, unit)) {
          EXPECT_EQ(range.begin, next);
          EXPECT_GT(range.length, 0);
          next += range.length;
          least = std::min(least, range.length);
          greatest = std::max(greatest, range.length);
          EXPECT_TRUE(range.length % unit == 0 || next == tokens);
        }
        EXPECT_EQ(next, tokens);
        EXPECT_LE(greatest - least, unit);
      }
    }
  }
}

TEST(Slices, MoreSlicesThanTokensAreRefused) {
  EXPECT_THROW(cut_into_slices(7, 8), InputError);
  EXPECT_THROW(cut_into_slices(256, 3, 128), InputError);
}

}  // namespace
}  // namespace penstock::model
