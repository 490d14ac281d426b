// SPDX-License-Identifier: Apache-2.0
// How many keys one call of attention on a card goes over, which the run and its memory model share: earlier
// slices that are short are joined, and a repeatable backward goes by blocks.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/units.h"

namespace penstock::model {

// Numbers of consecutive chunks that one call goes over, given the chunks' lengths in the order in which they
// are attended to, newest first: a call takes chunks until it has at least so many keys. 0: each by itself.
std::vector<std::size_t> joined_chunks(std::span<const Tokens> lengths, Tokens least_keys);

// The chunks in groups of these numbers, which add up to all of them. The groups are views of `chunks`.
template <class Chunk>
std::vector<std::span<const Chunk>> in_groups(std::span<const Chunk> chunks,
                                              std::span<const std::size_t> counts) {
  std::vector<std::span<const Chunk>> groups;
  for (const std::size_t count : counts) {
    groups.push_back(chunks.first(count));
    chunks = chunks.subspan(count);
  }
  return groups;
}

// The most queries, and as many keys, of one call of a repeatable backward.
inline constexpr Tokens kRepeatableBlock = 8192;

// The most keys of a repeatable backward's call without a causal mask, of at most `block` queries: so many
// that queries · keys, which its room grows with, is at most that of a square block. In whole tiles of 128.
Tokens keys_of_block(Tokens queries, Tokens block);

// Keys that a call in bf16 on a card should have: on an H200, 1,024 queries over as many keys take 2 to 3
// times as long per FLOP as over 16,384, and each call adds a pass over the queries. No more than one call of
// the backward takes.
Tokens keys_at_once(Tokens queries, bool repeatable);

}  // namespace penstock::model
