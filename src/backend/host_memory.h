// SPDX-License-Identifier: Apache-2.0
// Memory of the host's to and from which a card copies by itself: there it is pinned, at once and whole; on
// the CPU pages are allocated on first write.
#pragma once

#include <cstddef>
#include <span>

#include "base/units.h"

namespace penstock::backend {

class HostMemory {
 public:
  // Throws RunError when the system has none, or pins no more.
  explicit HostMemory(Bytes size);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  std::span<std::byte> bytes() const { return {begin_, size_}; }

 private:
  std::byte* begin_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace penstock::backend
