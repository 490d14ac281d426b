// SPDX-License-Identifier: Apache-2.0
#include "files/chat_template.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "files/mapped_file.h"

namespace penstock::files {
namespace {

constexpr std::string_view kAssistant = "assistant";

struct KnownTemplate {
  std::string_view name, begin, turn;
};
constexpr KnownTemplate kKnown[] = {
    {"chatml", "", "<|im_start|>{role}\n{content}<|im_end|>\n"},
    {"llama3", "<|begin_of_text|>", "<|start_header_id|>{role}<|end_header_id|>\n\n{content}<|eot_id|>"}};

}  // namespace

ChatTemplate::ChatTemplate(const std::string& name) {
  for (const KnownTemplate& known : kKnown) {
    if (known.name != name) continue;
    begin_ = known.begin;
    parse(known.turn, name);
    return;
  }
  std::error_code error;
  require(std::filesystem::exists(name, error),
          printable(name, 500) + " is neither \"chatml\" nor \"llama3\" nor a file");
  parse(without_byte_order_mark(MappedFile(name).text()), printable(name, 500));
}

void ChatTemplate::parse(std::string_view text, const std::string& origin) {
  std::int64_t line = 1;
  const auto fail = [&](const std::string& what) {
    throw InputError(origin + ":" + std::to_string(line) + ": " + what);
  };
  const auto add = [&](char c) {
    if (pieces_.empty() || pieces_.back().kind != Piece::Kind::Text) pieces_.push_back({});
    pieces_.back().text += c;
    if (c == '\n') ++line;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool doubled = i + 1 < text.size() && text[i + 1] == c;
    if (c != '{' && c != '}') {
      add(c);
    } else if (doubled) {
      add(c);
      ++i;
    } else if (c == '}') {
      fail("a \"}\" closes no \"{\"; write \"}}\" for the character");
    } else {
      const std::size_t end = text.find('}', i);
      if (end == text.npos || text.substr(i, end - i).find('\n') != text.npos)
        fail("a \"{\" does not close; write \"{{\" for the character");
      const std::string_view word = text.substr(i + 1, end - i - 1);
      if (word != "role" && word != "content")
        fail("{" + printable(word, 50) + "} is unknown; use {role} and {content}");
      pieces_.push_back({word == "role" ? Piece::Kind::Role : Piece::Kind::Content, {}});
      i = end;
    }
  }
  const bool whole =
      std::ranges::any_of(pieces_, [](const Piece& piece) { return piece.kind == Piece::Kind::Content; });
  if (!whole) fail("has no {content}");
}

std::vector<TextPart> ChatTemplate::render(const std::vector<Message>& messages, bool all) const {
  std::vector<TextPart> parts;
  const auto add = [&](const std::string& text, bool in_loss) {
    if (text.empty()) return;
    if (!parts.empty() && parts.back().in_loss == in_loss) {
      parts.back().text += text;
    } else {
      parts.push_back({text, in_loss});
    }
  };
  add(begin_, all);
  for (const Message& message : messages) {
    bool answering = false;
    for (const Piece& piece : pieces_) {
      answering |= piece.kind == Piece::Kind::Content && message.role == kAssistant;
      const std::string& text = piece.kind == Piece::Kind::Role      ? message.role
                                : piece.kind == Piece::Kind::Content ? message.content
                                                                     : piece.text;
      add(text, all || answering);
    }
  }
  return parts;
}

}  // namespace penstock::files
