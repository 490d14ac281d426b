// SPDX-License-Identifier: Apache-2.0
// Host memory for asynchronous copies to and from a GPU, pinned in full at construction. On the CPU it is
// not pinned, and pages are allocated on first write.
#pragma once

#include <cstddef>
#include <span>

#include "base/units.h"

namespace penstock::backend {

class HostMemory {
 public:
  // Throws RunError, with what the memory is for, if the system cannot allocate or pin it.
  HostMemory(Bytes size, const char* purpose);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  std::span<std::byte> bytes() const { return {begin_, size_}; }

 private:
  std::byte* begin_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace penstock::backend
