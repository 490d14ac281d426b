// SPDX-License-Identifier: Apache-2.0
#include "backend/host_memory.h"

#include <utility>

namespace penstock::backend {

void HostMemory::swap(HostMemory& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(size_, other.size_);
}

}  // namespace penstock::backend
