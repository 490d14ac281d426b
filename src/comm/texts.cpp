// SPDX-License-Identifier: Apache-2.0
#include "comm/texts.h"

namespace penstock::comm {

std::string broadcast_text(const std::string& mine, int speaker, Communicator& world) {
  auto size = static_cast<std::int64_t>(mine.size());
  world.broadcast(writable_bytes_of(size), speaker);
  std::string text = world.rank() == speaker ? mine : std::string(static_cast<std::size_t>(size), '\0');
  world.broadcast(std::as_writable_bytes(std::span(text)), speaker);
  return text;
}

std::vector<std::string> all_texts(const std::string& mine, Communicator& world) {
  std::vector<std::string> texts;
  for (int rank = 0; rank < world.size(); ++rank) texts.push_back(broadcast_text(mine, rank, world));
  return texts;
}

}  // namespace penstock::comm
