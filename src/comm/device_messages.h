// SPDX-License-Identifier: Apache-2.0
// Messages whose bytes are in a card's memory (backend/device_memory.h).
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

// Copies between memories of the host or the card; of the card in the order of the caller's stream.
void copy_anywhere(std::byte* to, std::span<const std::byte> from);

// For a transport that reads the host's memory alone: post(bytes) sends them, or their copy on the host if
// they are a card's; or receives them, or what is then copied to the card's memory.
Request send_by_host(std::span<const std::byte> bytes,
                     const std::function<Request(std::span<const std::byte>)>& post);
Request receive_by_host(std::span<std::byte> bytes, const std::function<Request(std::span<std::byte>)>& post);

}  // namespace penstock::comm
