// SPDX-License-Identifier: Apache-2.0
// The text of a turn of conversations.
#include <stdexcept>

#include "files/chat_template.h"
#include "fuzz/driver.h"

namespace penstock::files {
namespace {

void take(std::string_view input) {
  const ChatTemplate chat(input, "fuzz");
  std::string text;
  bool in_loss = false;
  for (const TextPart& part : chat.render({{"user", "why?"}, {"assistant", "because"}}, false)) {
    text += part.text;
    in_loss |= part.in_loss;
  }
  if (text.find("because") == text.npos || !in_loss)
    throw std::logic_error("no token of an answer is a target");
}

}  // namespace
}  // namespace penstock::files

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::files::take); }
