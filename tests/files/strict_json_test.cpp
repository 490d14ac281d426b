// SPDX-License-Identifier: Apache-2.0
#include "files/strict_json.h"

#include <gtest/gtest.h>

namespace penstock::files {
namespace {

std::string nested(int levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(Nesting, IsCountedOutsideOfStrings) {
  EXPECT_FALSE(is_nested_beyond(nested(5), 5));
  EXPECT_TRUE(is_nested_beyond(nested(6), 5));
  EXPECT_FALSE(is_nested_beyond(R"({"[[[[": ["]\"[[[[", {}, {}, []]})", 3));
  EXPECT_TRUE(is_nested_beyond(R"({"\\": [[]]})", 2));
  EXPECT_FALSE(is_nested_beyond("", 0));
}

// The library copies a value by recursion: of a million levels that ends the process.
TEST(ParseOrDiscard, DiscardsWhatIsNestedDeeply) {
  EXPECT_TRUE(parse_or_discard(nested(16)).is_array());
  for (const int levels : {17, 1'000'000}) {
    const nlohmann::json value = parse_or_discard(nested(levels));
    const nlohmann::json copy = value;
    EXPECT_TRUE(copy.is_discarded()) << levels;
  }
  EXPECT_TRUE(parse_or_discard("{\"a\": ").is_discarded());
  EXPECT_EQ(parse_or_discard("{\"a\": 1}")["a"], 1);
}

}  // namespace
}  // namespace penstock::files
