// SPDX-License-Identifier: Apache-2.0
// One direction between the GPUs of two ranks: an NCCL group of only these two, so that no other messages
// block its own, with its own stream.
//
// On a GPU, an NCCL message waits for its other side, and some driver calls wait for all work that the GPU
// has. So each side gives its GPU a message only when the other side does too (gpu_links.h).
#pragma once

#include <cstddef>
#include <memory>

#include "backend/device_memory.h"
#include "comm/gpus/nccl.h"

namespace penstock::comm {

// One thread. NCCL errors are RunErrors with NCCL's text.
class GpuLink {
 public:
  // Starts a thread that joins the group and moves one byte through it. NCCL waits for the other rank in
  // both; the first message opens the connection.
  GpuLink(const Nccl& nccl, const Nccl::Id& id, bool sending);
  ~GpuLink();
  GpuLink(const GpuLink&) = delete;
  GpuLink& operator=(const GpuLink&) = delete;

  // Whether both ranks have joined.
  bool joined();

  // Gives the GPU the message, ordered after `ready`. Both sides pass the same messages in the same order
  // and with the same lengths. Returns the point after the message.
  backend::DeviceMemory::Point move(void* data, std::size_t bytes, const backend::DeviceMemory::Point& ready);

  // Whether the GPU has passed the point of a message.
  bool passed(const backend::DeviceMemory::Point& point) const;

  // Throws if NCCL has met an error since the ranks joined, in the network for example.
  void check() const;

  // Ends the group and waits until the other rank ends its side. Any thread, as the last call on the link;
  // otherwise the destructor does it.
  void end();

  // Call when a rank is lost; nothing uses the link afterwards. Does not wait.
  void abandon();

 private:
  struct State;

  std::shared_ptr<State> state_;  // shared with the joining thread, which may outlive the link
};

}  // namespace penstock::comm
