// SPDX-License-Identifier: Apache-2.0
#include "report/html_columns.h"

#include <gtest/gtest.h>

#include <vector>

#include "report/html_json.h"

namespace penstock::report {
namespace {

TEST(Columns, EncodeAsTheStandardSays) {
  // RFC 4648, section 10.
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64(std::string("\xFF\xFE\x00", 3)), "//4A");
}

TEST(Columns, WriteSmallNumbersInOneByte) {
  Columns columns;
  columns.add(0);
  columns.add(127);
  columns.add_signed(-1);
  columns.add_signed(1);
  columns.add_signed(-64);
  EXPECT_EQ(columns.base64(), base64(std::string("\x00\x7F\x01\x02\x7F", 5)));
}

TEST(Columns, WriteLargeNumbersLowBitsFirst) {
  Columns columns;
  columns.add(300);
  columns.add_signed(-150);
  columns.add(std::uint64_t{1} << 40);
  EXPECT_EQ(columns.base64(), base64("\xAC\x02\xAB\x02\x80\x80\x80\x80\x80\x20"));
}

TEST(Columns, CountDifferencesOfZero) {
  Columns columns;
  columns.add_differences(std::vector<std::int64_t>{0, 0, 0, 5, 5, 4});
  EXPECT_EQ(columns.base64(), base64(std::string("\x00\x02\x0A\x00\x00\x01", 6)));
}

TEST(PageJson, HasNoByteThatMarkupNeeds) {
  const std::string text = json_text("</script><!-- & \"quoted\" 'single' \\ \n -->");
  EXPECT_EQ(text.find_first_of("<>&\n"), std::string::npos) << text;
  EXPECT_EQ(text.substr(0, 18), "\"\\u003c/script\\u00");
}

}  // namespace
}  // namespace penstock::report
