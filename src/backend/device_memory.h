// SPDX-License-Identifier: Apache-2.0
// GPU memory for code that moves bytes without LibTorch.
//
// A GPU executes a thread's work asynchronously, in the order of that thread's stream. So these calls return
// before their work is done, and points express the order between threads.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace penstock::backend {

// Any thread.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  virtual bool holds(const void* address) const = 0;

  using Point = std::shared_ptr<void>;         // an event; null where callers have none, and never given here
  virtual Point point() = 0;                   // after the work this thread has issued
  virtual void come_behind(const Point&) = 0;  // orders this thread's later work after the point
  virtual void wait_for(const Point&) = 0;     // blocks until the GPU has passed it
  virtual bool passed(const Point&) = 0;

  // Either side may be host memory.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  // into[i] += from[i] for `count` elements of `element` bytes: 4 (float) or 8 (double).
  virtual void add(void* into, const void* from, std::size_t count, std::size_t element) = 0;
  // Pinned host memory from a cache: reused once freed.
  virtual std::shared_ptr<std::byte> host_room(std::size_t bytes) = 0;
  // GPU memory. No ledger counts it, so it may outlive them all.
  virtual std::shared_ptr<std::byte> device_room(std::size_t bytes) = 0;

  // A stream apart from the threads' streams, for code that moves bytes itself. Streams never wait for one
  // another implicitly. In work() the calling thread's work, and driver calls that take `handle` (the
  // driver's stream), go to this stream, on its GPU.
  class Stream {
   public:
    virtual ~Stream() = default;
    virtual void work(const std::function<void(void* handle)>& issue) = 0;
  };
  // On the calling thread's GPU. Used by one thread at a time, any thread.
  virtual std::unique_ptr<Stream> stream() = 0;
};

// The memory of this process's GPU; null without a GPU, and before use_device_memory().
DeviceMemory* device_memory();
void use_device_memory(DeviceMemory* memory);  // call before other threads use it; must outlive all use

}  // namespace penstock::backend
