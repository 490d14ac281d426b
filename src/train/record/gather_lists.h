// SPDX-License-Identifier: Apache-2.0
// Gathers lists of different lengths on one rank.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "schedule/program.h"

namespace penstock::train {

// Returns every rank's list on rank 0, by rank; empty on the others. Entries are sent as their bytes.
// Collective: `ranks` is a comm::Pipeline or comm::World.
template <class Entry, class Ranks>
std::vector<std::vector<Entry>> gather_lists(const std::vector<Entry>& mine, Ranks ranks) {
  constexpr int channel = static_cast<int>(schedule::Channel::Control);
  std::vector<std::size_t> counts(static_cast<std::size_t>(ranks->size()));
  const std::size_t count = mine.size();
  ranks->all_gather(std::as_bytes(std::span(&count, 1)), std::as_writable_bytes(std::span(counts)));
  if (ranks->rank() != 0) {
    ranks->send(std::as_bytes(std::span(mine)), 0, channel).wait();
    return {};
  }
  std::vector<std::vector<Entry>> lists{mine};
  for (int rank = 1; rank < ranks->size(); ++rank) {
    std::vector<Entry> entries(counts[static_cast<std::size_t>(rank)]);
    ranks->receive(std::as_writable_bytes(std::span(entries)), rank, channel).wait();
    lists.push_back(std::move(entries));
  }
  return lists;
}

}  // namespace penstock::train
