// SPDX-License-Identifier: Apache-2.0
// What those who move bytes without LibTorch need of a card's memory.
//
// A card carries out what a thread issues later than it is issued, in the order of that thread's stream; so
// these calls return before their work is done, and order between threads is stated by points.
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

  using Point = std::shared_ptr<void>;         // empty: passed
  virtual Point point() = 0;                   // behind what this thread has issued
  virtual void come_behind(const Point&) = 0;  // what this thread issues next comes behind the point
  virtual void wait_for(const Point&) = 0;     // until the card has passed it
  virtual bool passed(const Point&) = 0;

  // Either side may be the host's memory.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  // into[i] += from[i] of `count` numbers of 4 bytes (float) or 8 (double).
  virtual void add(void* into, const void* from, std::size_t count, std::size_t element) = 0;
  // Memory of the host's that the card copies to and from by itself, and that others reuse when it is freed.
  virtual std::shared_ptr<std::byte> host_room(std::size_t bytes) = 0;
  // Of the card's; no ledger counts it, so that it may outlive all.
  virtual std::shared_ptr<std::byte> device_room(std::size_t bytes) = 0;

  // A stream beside those of threads, for whoever moves bytes by itself; none waits for another's work. Its
  // thread's calls in work(), and what `handle`, the driver's, is given to there, are in the order of this
  // stream, on its card.
  class Stream {
   public:
    virtual ~Stream() = default;
    virtual void work(const std::function<void(void* handle)>& issue) = 0;
  };
  // Of the calling thread's card; used by any one thread at a time.
  virtual std::unique_ptr<Stream> stream() = 0;
};

// This process's card; null, and so it is at first: there is none.
DeviceMemory* device_memory();
void use_device_memory(DeviceMemory* memory);  // before other threads ask; outlives all use

}  // namespace penstock::backend
