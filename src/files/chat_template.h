// SPDX-License-Identifier: Apache-2.0
// Renders conversations as text, turn by turn, and marks which parts are targets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock::files {

struct Message {
  std::string role, content;
};

struct TextPart {
  std::string text;
  bool in_loss = true;  // its tokens are targets
};

class ChatTemplate {
 public:
  // "chatml" (OpenAI, 2023), "llama3" (Meta, 2024), or the path of a file with the text of one turn, in which
  // {role} and {content} stand for the message's role and content, and {{ and }} for braces. Throws
  // InputError that names the file and line: {content} missing, unbalanced braces, other names in braces.
  explicit ChatTemplate(const std::string& name);

  // Takes such a file's contents; `origin` names them in errors.
  ChatTemplate(std::string_view turn, const std::string& origin) { parse(turn, origin); }

  // Targets are the assistant's turns from {content} to the end of the turn; with `all`, all text.
  std::vector<TextPart> render(const std::vector<Message>& messages, bool all) const;

 private:
  struct Piece {
    enum class Kind { Text, Role, Content } kind = Kind::Text;
    std::string text;
  };
  void parse(std::string_view text, const std::string& origin);

  std::string begin_;          // of a conversation
  std::vector<Piece> pieces_;  // of a turn
};

}  // namespace penstock::files
