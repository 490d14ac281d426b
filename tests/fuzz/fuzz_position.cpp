// SPDX-License-Identifier: Apache-2.0
// Positions of ranks, a line each, and what is concluded from them.
#include <stdexcept>

#include "base/error.h"
#include "base/text.h"
#include "fuzz/driver.h"
#include "train/flight/position.h"

namespace penstock::train {
namespace {

constexpr std::size_t kMostRanks = 64;

void take(std::string_view input) {
  const auto lines = split(input, '\n');
  if (lines.size() > kMostRanks) throw InputError("too many ranks");
  Positions positions;
  for (const std::string_view line : lines) {
    const int rank = static_cast<int>(positions.size());
    auto& position = positions.emplace_back();
    if (line == "-") continue;  // does not answer
    position = parse_position(line, "fuzz", rank, static_cast<int>(lines.size()));
    const std::string once = json_of(*position);
    if (json_of(parse_position(once, "fuzz", rank, static_cast<int>(lines.size()))) != once)
      throw std::logic_error("printing and parsing are not inverse");
  }
  const comm::RankNames names(positions.size(), {"d0 p1", "n7"});
  if (culprit(positions, names).empty() || print_positions(positions, names).empty())
    throw std::logic_error("nothing is concluded");
}

}  // namespace
}  // namespace penstock::train

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::train::take); }
