// SPDX-License-Identifier: Apache-2.0
#include "cli/agree.h"

#include <algorithm>
#include <span>

#include "base/text.h"
#include "comm/launcher.h"
#include "comm/texts.h"

namespace penstock::cli {

Refusal agree(const Refusal& mine, comm::Communicator& world) {
  std::int64_t refusing = mine ? world.size() - world.rank() : 0;
  world.all_reduce(&refusing, 1, comm::Type::I64, comm::Reduction::Max);
  if (refusing == 0) return {};
  const int speaker = world.size() - static_cast<int>(refusing);
  auto exit_code = static_cast<std::int64_t>(mine.exit_code);
  world.broadcast(comm::writable_bytes_of(exit_code), speaker);
  std::string text = mine.text;
  if (speaker > 0 && world.rank() == speaker)  // rank 0, which prints it, does not refuse
    text += " (rank " + std::to_string(speaker) + ", host " + comm::host_name() + ")";
  return {comm::broadcast_text(text, speaker, world), static_cast<Exit>(exit_code)};
}

bool on_any_rank(bool here, comm::Communicator& world) {
  std::int64_t count = here ? 1 : 0;
  world.all_reduce(&count, 1, comm::Type::I64, comm::Reduction::Max);
  return count > 0;
}

void require_same(const std::string& configuration, comm::Communicator& world) {
  const std::string first = comm::broadcast_text(configuration, 0, world);
  if (configuration == first) return;
  const auto wanted = split(first, '\n'), found = split(configuration, '\n');
  const auto [theirs, ours] = std::ranges::mismatch(wanted, found);
  const auto line = [](auto place, const auto& lines) {
    return place == lines.end() ? std::string("nothing more") : printable(*place, 200);
  };
  throw InputError("rank " + std::to_string(world.rank()) + " was given " + line(ours, found) +
                   " where rank 0 has " + line(theirs, wanted) +
                   "; give all ranks the same run file, settings and files that these name");
}

}  // namespace penstock::cli
