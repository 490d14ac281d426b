// SPDX-License-Identifier: Apache-2.0
// The number of keys per attention call on a GPU, for the run and its memory model: short earlier slices are
// joined, and a repeatable backward goes block by block.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/units.h"

namespace penstock::model {

// Numbers of consecutive chunks per call. `lengths` is in the order of attention, newest first. A call takes
// chunks until it has at least `least_keys` keys; 0: one chunk per call.
std::vector<std::size_t> joined_chunks(std::span<const Tokens> lengths, Tokens least_keys);

// Groups of `counts` chunks each; the counts add up to all chunks. The groups are views of `chunks`.
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

// Upper bound on the queries, and on the keys, per call of a repeatable backward.
inline constexpr Tokens kRepeatableBlock = 8192;

// Upper bound on the keys of a repeatable backward call without a causal mask, with at most `block` queries:
// queries · keys, which scales its workspace, is at most block². A multiple of 128, or `block`.
Tokens keys_of_block(Tokens queries, Tokens block);

// Keys that a bf16 call on a GPU should have: on an H200, 1,024 queries over 1,024 keys take 2 to 3 times as
// long per FLOP as over 16,384, and each call adds a pass over the queries. At most one backward call's.
Tokens keys_at_once(Tokens queries, bool repeatable);

}  // namespace penstock::model
