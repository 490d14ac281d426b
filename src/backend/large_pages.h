// SPDX-License-Identifier: Apache-2.0
// Memory in the system's large pages.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace penstock::backend {

// Asks for large pages for what of the memory they can cover, before it is first written: their first use
// costs a fault for 2 MiB instead of one for every 4 KiB, and products miss the TLB less. A system that has
// none ignores it. Any thread.
inline void ask_for_large_pages(void* memory, std::size_t bytes) {
  constexpr std::uintptr_t kLarge = std::uintptr_t{2} << 20;
  const auto begin = (reinterpret_cast<std::uintptr_t>(memory) + kLarge - 1) / kLarge * kLarge;
  const auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / kLarge * kLarge;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace penstock::backend
