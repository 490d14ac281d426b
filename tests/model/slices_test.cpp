// SPDX-License-Identifier: Apache-2.0
#include "model/slices.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "failure.h"

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
  EXPECT_EQ(failure<InputError>([] { cut_into_slices(1, 2); }),
            "schedule.slices = 2 is more than the 1 token of a sequence; use at most 1");
  EXPECT_EQ(failure<InputError>([] { cut_into_slices(100, 2, 128); }),
            "schedule.slices = 2 is more than the 1 unit of 128 tokens of a sequence; use at most 1");
}

}  // namespace
}  // namespace penstock::model
