// SPDX-License-Identifier: Apache-2.0
// Copies between the memory of the compute device and the host's.
#pragma once

#include <cstddef>

namespace penstock::backend {

// Synchronous on the CPU. On a GPU it is issued to the calling thread's stream, and either side may be GPU
// or host memory.
void copy_bytes(void* to, const void* from, std::size_t bytes);

// Waits until the device has finished all work this thread issued.
void synchronize();

}  // namespace penstock::backend
