// SPDX-License-Identifier: Apache-2.0
// Arithmetic of reductions.
#pragma once

#include <cstddef>
#include <span>

#include "comm/communicator.h"

namespace penstock::comm {

std::size_t size_of(Type type);

// Combines blocks of `count` values into the first: neighbours first, then pairs of neighbours, ... (see
// docs/mesh.md, "Equal bits": ((0+1)+(2+3))+...). Changes the other blocks too.
void combine_tree(std::span<void* const> blocks, std::size_t count, Type type, Reduction reduction);

// Calls combine(into, from) for all pairs in that order.
template <class Combine>
void for_tree(std::span<void* const> blocks, Combine&& combine) {
  for (std::size_t apart = 1; apart < blocks.size(); apart *= 2) {
    for (std::size_t i = 0; i + apart < blocks.size(); i += 2 * apart) combine(blocks[i], blocks[i + apart]);
  }
}

// into[i] = into[i] (reduction) from[i]. Both aligned for the type and not overlapping.
void combine(void* into, const void* from, std::size_t count, Type type, Reduction reduction);

}  // namespace penstock::comm
