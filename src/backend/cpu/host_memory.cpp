// SPDX-License-Identifier: Apache-2.0
#include "backend/host_memory.h"

#include <sys/mman.h>

#include "base/error.h"

namespace penstock::backend {

HostMemory::HostMemory(Bytes size, const char* purpose) : size_(static_cast<std::size_t>(size)) {
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw RunError("out of memory: " + print_bytes(size) + " wanted on the host for " + purpose);
  begin_ = static_cast<std::byte*>(memory);
}

HostMemory::~HostMemory() { munmap(begin_, size_); }

}  // namespace penstock::backend
