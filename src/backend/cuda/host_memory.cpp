// SPDX-License-Identifier: Apache-2.0
#include "backend/host_memory.h"

#include <cuda_runtime_api.h>

#include <string>

#include "base/error.h"

namespace penstock::backend {

HostMemory::HostMemory(Bytes size, const char* purpose) : size_(static_cast<std::size_t>(size)) {
  void* memory = nullptr;
  const cudaError_t code = cudaHostAlloc(&memory, size_, cudaHostAllocPortable);
  if (code != cudaSuccess)
    throw RunError(print_bytes(size) + " of the host's memory cannot be pinned for " + purpose + " (" +
                   cudaGetErrorString(code) + "): a larger limit on locked memory (ulimit -l) or on the " +
                   "container's memory allows more");
  begin_ = static_cast<std::byte*>(memory);
}

HostMemory::~HostMemory() { cudaFreeHost(begin_); }

}  // namespace penstock::backend
