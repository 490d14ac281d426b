// SPDX-License-Identifier: Apache-2.0
#include "model/joined_keys.h"

#include <algorithm>

namespace penstock::model {

std::vector<std::size_t> joined_chunks(std::span<const Tokens> lengths, Tokens least_keys) {
  std::vector<std::size_t> counts;
  Tokens keys = 0;  // in the last group
  for (const Tokens length : lengths) {
    if (counts.empty() || keys >= least_keys) {
      counts.push_back(0);
      keys = 0;
    }
    ++counts.back();
    keys += length;
  }
  return counts;
}

Tokens keys_of_block(Tokens queries, Tokens block) {
  constexpr Tokens kTile = 128;
  const Tokens fitting = block * block / std::clamp<Tokens>(queries, 1, block);
  return std::max(block, fitting / kTile * kTile);
}

Tokens keys_at_once(Tokens queries, bool repeatable) {
  constexpr Tokens kUsual = 16384;
  return repeatable ? std::min(kUsual, keys_of_block(queries, kRepeatableBlock)) : kUsual;
}

}  // namespace penstock::model
