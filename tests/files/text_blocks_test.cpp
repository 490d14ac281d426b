// SPDX-License-Identifier: Apache-2.0
#include "files/text_blocks.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "failure.h"

namespace penstock::files {
namespace {

std::vector<std::string> blocks_of(std::string_view text, std::size_t wanted, bool whole_lines) {
  std::vector<std::string> blocks;
  while (!text.empty()) {
    const std::size_t length = first_block(text, wanted, whole_lines);
    blocks.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return blocks;
}

// Lines of up to 40 characters of one to three bytes.
std::string drawn_text(std::uint64_t seed) {
  std::string text;
  for (std::uint64_t line = 0; line < 30; ++line) {
    for (std::uint64_t i = 0; i < random_bits(seed, line) % 40; ++i)
      text += random_bits(seed + 1, 100 * line + i) % 3 == 0 ? "\xE2\x82\xAC" : "a";
    text += "\n";
  }
  return text;
}

TEST(TextBlocks, TogetherAreTheTextAndEndWithALineOrACharacter) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::string text = drawn_text(3 * seed);
    for (const std::size_t wanted : {1u, 5u, 17u, 100u, 5000u}) {
      std::string together;
      for (const std::string& block : blocks_of(text, wanted, false)) {
        EXPECT_LE(block.size(), 2 * wanted);
        const auto next = static_cast<unsigned char>(text[together.size() + block.size()]);
        EXPECT_TRUE(wanted < 4 || (next & 0xC0) != 0x80) << "cut inside a character";
        EXPECT_EQ(first_block(block, wanted, false), block.size()) << "a block is cut once";
        together += block;
      }
      EXPECT_EQ(together, text);
    }
  }
}

TEST(TextBlocks, KeepLinesWhole) {
  for (const std::string& block : blocks_of(drawn_text(7), 10, true)) EXPECT_EQ(block.back(), '\n');
  EXPECT_EQ(blocks_of("a long line\nno end", 3, true), (std::vector<std::string>{"a long line\n", "no end"}));
}

TEST(TextBlocks, OfBytesThatAreNoUtf8AreCutAnywhere) {
  const std::string bytes(100, '\x80');
  EXPECT_EQ(blocks_of(bytes, 10, false).front().size(), 17u);
}

TEST(JsonLines, GiveTheTextUnderTheKey) {
  const auto texts = texts_of_json_lines(
      "{\"text\": \"one\\n\\u20ac\", \"id\": 7}\n\n  \n{\"id\": [1, {}], \"text\": "
      "\"\"}\r\n{\"text\":\"last\"}",
      "text", "x", 1);
  EXPECT_EQ(texts, (std::vector<std::string>{"one\n\xE2\x82\xAC", "", "last"}));
  EXPECT_EQ(texts_of_json_lines("{\"body\": \"b\"}", "body", "x", 1), std::vector<std::string>{"b"});
}

TEST(JsonLines, NameTheLineThatIsWrong) {
  const auto refusal = [](std::string_view line) {
    return failure<InputError>(
        [&] { texts_of_json_lines("{\"text\": \"\"}\n\n" + std::string(line), "text", "x.jsonl", 10); });
  };
  EXPECT_TRUE(refusal("{\"text\": ").starts_with("x.jsonl:12: is not JSON: "));
  EXPECT_EQ(refusal("[1]"), "x.jsonl:12: is no JSON object");
  EXPECT_EQ(refusal("{\"test\": \"\"}"), "x.jsonl:12: has no \"text\"");
  EXPECT_EQ(refusal("{\"text\": 3}"), "x.jsonl:12: \"text\" is number; expected a text");
  EXPECT_TRUE(refusal("{\"text\": \"\xFF\"}").starts_with("x.jsonl:12: is not JSON: "));
}

}  // namespace
}  // namespace penstock::files
