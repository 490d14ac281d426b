// SPDX-License-Identifier: Apache-2.0
#include "files/text_blocks.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "failure.h"
#include "scratch.h"

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

// Searching each block's rest for the end of the line would take a minute.
TEST(TextBlocks, OfALongLineTakeLinearTime) {
  const std::string text(8 << 20, 'a');
  const Seconds began = steady_seconds();
  std::size_t length = 0;
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(length))
    length = first_block(rest, 16, false);
  EXPECT_EQ(length, 32u);
  EXPECT_LT(steady_seconds() - began, 5);
}

TEST(TextBlocks, OfBytesThatAreNoUtf8AreCutAnywhere) {
  const std::string bytes(100, '\x80');
  EXPECT_EQ(blocks_of(bytes, 10, false).front().size(), 17u);
}

// The text of each document; targets in brackets if some tokens are not.
std::vector<std::string> texts_of(std::string_view lines, const JsonDocuments& documents = {}) {
  std::vector<std::string> texts;
  for (const auto& parts : documents_of_json_lines(lines, documents, "x.jsonl", 10)) {
    std::string& text = texts.emplace_back();
    for (const TextPart& part : parts)
      text += parts.size() > 1 && part.in_loss ? "[" + part.text + "]" : part.text;
  }
  return texts;
}

TEST(JsonLines, GiveTheTextUnderTheKey) {
  const auto texts = texts_of(
      "{\"text\": \"one\\n\\u20ac\", \"id\": 7}\n\n  \n{\"id\": [1, {}], \"text\": "
      "\"\"}\r\n{\"text\":\"last\"}");
  EXPECT_EQ(texts, (std::vector<std::string>{"one\n\xE2\x82\xAC", "", "last"}));
  EXPECT_EQ(texts_of("{\"body\": \"b\"}", {.key = "body"}), std::vector<std::string>{"b"});
}

constexpr std::string_view kTurns =
    R"({"messages": [{"role": "user", "content": "two?"}, {"role": "assistant", "content": "2"}, {"role": "user", "content": "and?"}, {"role": "assistant", "content": "3"}]})";

TEST(JsonLines, GiveConversationsByTheTemplateWithWhatTheAssistantSaysToBeLearnt) {
  EXPECT_EQ(texts_of(kTurns).front(),
            "<|im_start|>user\ntwo?<|im_end|>\n<|im_start|>assistant\n[2<|im_end|>\n]"
            "<|im_start|>user\nand?<|im_end|>\n<|im_start|>assistant\n[3<|im_end|>\n]");
  EXPECT_EQ(texts_of(kTurns, {.chat = ChatTemplate("llama3")}).front(),
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\ntwo?<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n[2<|eot_id|>]"
            "<|start_header_id|>user<|end_header_id|>\n\nand?<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n[3<|eot_id|>]");
  EXPECT_EQ(texts_of(kTurns, {.learns_all = true}).front().find('['), std::string::npos);
  const Scratch scratch;
  scratch.write("turn.txt", "{{{role}}}: {content};");
  EXPECT_EQ(texts_of(kTurns, {.chat = ChatTemplate(scratch / "turn.txt")}).front(),
            "{user}: two?;{assistant}: [2;]{user}: and?;{assistant}: [3;]");
}

TEST(ChatTemplate, NamesTheLineThatDoesNotClose) {
  const Scratch scratch;
  const auto refusal = [&](const char* text) {
    scratch.write("turn.txt", text);
    const std::string words = failure<InputError>([&] { ChatTemplate(scratch / "turn.txt"); });
    return words.substr(words.find("turn.txt"));
  };
  EXPECT_EQ(refusal("a\n{role\n}{content}"),
            "turn.txt:2: a \"{\" does not close; write \"{{\" for the character");
  EXPECT_EQ(refusal("{content"), "turn.txt:1: a \"{\" does not close; write \"{{\" for the character");
  EXPECT_EQ(refusal("{content}\n\n}"), "turn.txt:3: a \"}\" closes no \"{\"; write \"}}\" for the character");
  EXPECT_EQ(refusal("{name}"), "turn.txt:1: {name} is unknown; use {role} and {content}");
  EXPECT_EQ(refusal("{role}"), "turn.txt:1: has no {content}");
  EXPECT_EQ(failure<InputError>([] { ChatTemplate("chatlm"); }),
            "chatlm is neither \"chatml\" nor \"llama3\" nor a file");
}

TEST(JsonLines, NameTheLineAndMemberThatIsWrong) {
  const auto refusal = [](std::string_view line) {
    return failure<InputError>([&] { texts_of("{\"text\": \"\"}\n\n" + std::string(line)); });
  };
  EXPECT_EQ(refusal("{\"text\": "),
            "x.jsonl:12: the line ends before its JSON does; each line must be a whole object (JSON lines), "
            "as jq -c writes them");
  EXPECT_EQ(refusal("{\"text\": x}"), "x.jsonl:12: is not JSON: column 10: unexpected \"x\"");
  EXPECT_EQ(refusal(std::string_view("{\"text\": \"x\"}\0{\"text\": \"lost\"}", 31)),
            "x.jsonl:12: is not JSON: column 14: unexpected \"\\x00\"");
  EXPECT_EQ(refusal("[1]"),
            "x.jsonl:12: is not a JSON object; each line must be one, as jq -c '.[]' writes them of a list");
  EXPECT_EQ(refusal("{\"test\": \"\"}"), "x.jsonl:12: has no \"text\"");
  EXPECT_EQ(refusal("{\"text\": 3}"), "x.jsonl:12: \"text\" is number; expected a text");
  EXPECT_TRUE(refusal("{\"text\": \"\xFF\"}").starts_with("x.jsonl:12: is not JSON: "));
  EXPECT_EQ(refusal(R"({"messages": [{"role": "user", "content": "a"}, {"content": "b"}]})"),
            "x.jsonl:12: has no messages[1].role");
  EXPECT_EQ(refusal(R"({"messages": [{"role": "user", "content": null}]})"),
            "x.jsonl:12: messages[0].content is null; expected a text");
  EXPECT_EQ(refusal(R"({"messages": ["a"]})"), "x.jsonl:12: messages[0] is not a JSON object");
  EXPECT_NE(refusal(R"({"messages": []})").find("must be a list of objects"), std::string::npos);
}

}  // namespace
}  // namespace penstock::files
