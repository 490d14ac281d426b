// SPDX-License-Identifier: Apache-2.0
#include "report/plot.h"

#include <gtest/gtest.h>

#include <cmath>

#include "report/count.h"

namespace penstock::report {
namespace {

TEST(Plot, DrawsAPointForEveryValueAndLeavesAGapForWhatIsNotFinite) {
  const Plot plot{
      .title = "t", .axis = "n", .positions = {"1", "2", "4"}, .curves = {{"makespan", "s", {3, NAN, 1}}}};
  const std::string drawn = svg(plot);
  EXPECT_EQ(count(drawn, "<circle"), 2u);
  EXPECT_EQ(count(drawn, "M"), 3u) << "the axis, and one beginning on each side of the gap";
}

TEST(Plot, EscapesTextFromOutside) {
  const Plot plot{.title = "<script>", .axis = "&", .positions = {"\"<"}, .curves = {{"<b>", "", {1}}}};
  const std::string drawn = svg(plot);
  EXPECT_EQ(drawn.find("<script>"), std::string::npos);
  EXPECT_EQ(drawn.find("<b>"), std::string::npos);
  EXPECT_NE(drawn.find("&lt;script&gt;"), std::string::npos);
}

}  // namespace
}  // namespace penstock::report
