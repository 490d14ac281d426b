// SPDX-License-Identifier: Apache-2.0
#include "base/columns.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Columns, AreAsWideAsTheirWidestCell) {
  EXPECT_EQ(columns({{"device", "busy", "why"}, {"0", "12.5 s", "ramp"}}, "lrl"),
            "device    busy  why\n"
            "0       12.5 s  ramp\n");
}

TEST(Columns, TakeTheLastSideForTheRest) {
  EXPECT_EQ(columns({{"a", "b", "c"}, {"11", "22", "33"}}, "lr"), "a    b   c\n11  22  33\n");
  EXPECT_EQ(columns({{"a", "b"}, {"11", "22"}}), " a   b\n11  22\n");
}

TEST(Columns, CountCharactersNotBytes) {
  EXPECT_EQ(columns({{"α=½", "1"}, {"beta", "2"}}, "l"), "α=½   1\nbeta  2\n");
}

TEST(Columns, EndInNoBlanks) {
  EXPECT_EQ(columns({{"a", "long"}, {"b", ""}, {"c"}}, "l"), "a  long\nb\nc\n");
  EXPECT_EQ(columns({{"", ""}}), "\n");
  EXPECT_EQ(columns({}), "");
}

TEST(Columns, FillUpSingleTexts) {
  EXPECT_EQ(left_aligned("α", 3) + "|" + right_aligned("α", 3) + "|" + left_aligned("long", 2),
            "α  |  α|long");
}

}  // namespace
}  // namespace penstock
