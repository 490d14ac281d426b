// SPDX-License-Identifier: Apache-2.0
#include "train/data/packing.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"

namespace penstock::train {

Packing::Packing(std::span<const Piece> pieces, Tokens capacity) : begin_{0} {
  std::vector<std::int64_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0);
  const auto length = [&](std::int64_t piece) { return pieces[static_cast<std::size_t>(piece)].length; };
  std::ranges::stable_sort(order, std::greater(), length);

  std::map<Tokens, std::vector<std::int64_t>> by_room;  // by room left
  std::vector<std::int64_t> sample_of(pieces.size()), held;
  for (const std::int64_t piece : order) {
    PENSTOCK_CHECK(length(piece) <= capacity, "pieces fit a sample");
    auto found = by_room.lower_bound(length(piece));
    if (found == by_room.end()) {
      found = by_room.try_emplace(capacity).first;
      found->second.push_back(std::ssize(held));
      held.push_back(0);
    }
    const std::int64_t sample = found->second.back(), room = found->first - length(piece);
    found->second.pop_back();
    if (found->second.empty()) by_room.erase(found);
    if (room > 0) by_room[room].push_back(sample);
    sample_of[static_cast<std::size_t>(piece)] = sample;
    ++held[static_cast<std::size_t>(sample)];
  }

  std::partial_sum(held.begin(), held.end(), std::back_inserter(begin_));
  std::vector<std::int64_t> next(begin_.begin(), begin_.end() - 1);
  pieces_.resize(pieces.size());
  for (const std::int64_t piece : order) {
    const auto index = static_cast<std::size_t>(piece);
    const std::int64_t place = next[static_cast<std::size_t>(sample_of[index])]++;
    pieces_[static_cast<std::size_t>(place)] = pieces[index];
  }
}

std::span<const Piece> Packing::sample(std::int64_t index) const {
  const auto begin = static_cast<std::size_t>(begin_[static_cast<std::size_t>(index)]);
  const auto end = static_cast<std::size_t>(begin_[static_cast<std::size_t>(index) + 1]);
  return std::span(pieces_).subspan(begin, end - begin);
}

std::vector<Piece> pieces_of(std::int64_t begin, std::span<const std::int64_t> ends, Tokens longest,
                             bool full_targets) {
  std::vector<Piece> pieces;
  for (const std::int64_t end : ends) {
    for (; begin < end; begin += longest) {
      const Tokens length = std::min(longest, end - begin);
      pieces.push_back({begin, length, full_targets && begin + length < end});
    }
    begin = end;
  }
  return pieces;
}

}  // namespace penstock::train
