// SPDX-License-Identifier: Apache-2.0
// Messages whose bytes are in a GPU's memory (backend/device_memory.h).
#pragma once

#include <functional>
#include <span>

#include "backend/device_memory.h"
#include "comm/communicator.h"

namespace penstock::comm {

inline bool is_on_device(const void* address) {
  backend::DeviceMemory* const device = backend::device_memory();
  return device && device->holds(address);
}

// Copies within and between host and GPU memory; the GPU's are ordered on the caller's stream.
void copy_anywhere(std::byte* to, std::span<const std::byte> from);

// For transports that access host memory only. If `bytes` are in GPU memory, `post` gets host memory
// instead: a copy of what to send, or room from which received bytes are then copied to the GPU.
Request send_by_host(std::span<const std::byte> bytes,
                     const std::function<Request(std::span<const std::byte>)>& post);
Request receive_by_host(std::span<std::byte> bytes, const std::function<Request(std::span<std::byte>)>& post);

}  // namespace penstock::comm
