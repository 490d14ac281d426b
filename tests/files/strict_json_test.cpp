// SPDX-License-Identifier: Apache-2.0
#include "files/strict_json.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "failure.h"

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

// The library takes it for the end of the text.
TEST(ParseStrictly, RefusesAZeroByteWhereverItIs) {
  using namespace std::string_view_literals;
  const auto refusal = [](std::string_view text) {
    EXPECT_TRUE(parse_or_discard(text).is_discarded());
    return failure<InputError>([&] { parse_strictly(text, "x.json", "the file", 3); });
  };
  EXPECT_EQ(refusal("{\"a\": 1}\0{"sv),
            "x.json: the file is not JSON: line 1, column 9: unexpected \"\\x00\"");
  EXPECT_EQ(refusal("{\"a\":\n1}\0"sv),
            "x.json: the file is not JSON: line 2, column 3: unexpected \"\\x00\"");
  EXPECT_NE(refusal("\0"sv), "");
}

}  // namespace
}  // namespace penstock::files
