// SPDX-License-Identifier: Apache-2.0
// A GPU for tests of messages: memory of the host's in which each thread's work is done late, by a stream of
// its own that dawdles. What relies on work that is only issued reads what was there before.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "backend/device_memory.h"
#include "base/error.h"
#include "comm/lagging_stream.h"

namespace penstock::testing {

class LaggingGpu final : public backend::DeviceMemory {
 public:
  LaggingGpu() { backend::use_device_memory(this); }
  // When the streams beside those of threads are gone, which other threads may still destroy.
  ~LaggingGpu() override {
    for (int i = 0; i < 5000 && beside > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    streams_.clear();
    backend::use_device_memory(nullptr);
  }

  // Memory of the GPU's, for as long as it lives.
  std::byte* allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto& block = blocks_.emplace_back(bytes);
    return block.data();
  }

  // Work on that memory.
  void issue(std::function<void()> work) { stream_here().issue(std::move(work)); }
  template <class T>
  void fill(T* values, std::size_t count, T value) {
    issue([=] { std::fill_n(values, count, value); });
  }
  void synchronize() { wait_for(point()); }

  std::atomic<bool> lost = false;  // waits for it fail

  bool holds(const void* address) const override {
    const std::lock_guard lock(mutex_);
    for (const auto& block : blocks_) {
      const auto* byte = static_cast<const std::byte*>(address);
      if (byte >= block.data() && byte < block.data() + block.size()) return true;
    }
    return false;
  }

  Point point() override {
    const auto passed = std::make_shared<StreamPoint>();
    issue([passed] { passed->set(); });
    return passed;
  }
  void come_behind(const Point& point) override {
    issue([passed = std::static_pointer_cast<StreamPoint>(point)] { passed->wait(); });
  }
  void wait_for(const Point& point) override {
    std::static_pointer_cast<StreamPoint>(point)->wait();
    if (lost) throw RunError("the GPU fell off the bus");
  }
  bool passed(const Point& point) override { return std::static_pointer_cast<StreamPoint>(point)->is_set(); }

  void copy(void* to, const void* from, std::size_t bytes) override {
    issue([=] { std::memcpy(to, from, bytes); });
  }
  void add(void* into, const void* from, std::size_t count, std::size_t element) override {
    issue([=] {
      const auto sum = [count](auto* a, const auto* b) {
        for (std::size_t i = 0; i < count; ++i) a[i] += b[i];
      };
      element == sizeof(float) ? sum(static_cast<float*>(into), static_cast<const float*>(from))
                               : sum(static_cast<double*>(into), static_cast<const double*>(from));
    });
  }
  std::shared_ptr<std::byte> host_room(std::size_t bytes) override {
    return {new std::byte[bytes], std::default_delete<std::byte[]>()};
  }
  std::shared_ptr<std::byte> device_room(std::size_t bytes) override {
    return {allocate(bytes), [](std::byte*) {}};
  }
  std::unique_ptr<DeviceMemory::Stream> stream() override { return std::make_unique<Beside>(); }

 private:
  // Beside those of threads.
  class Beside final : public DeviceMemory::Stream {
   public:
    Beside() { ++beside; }
    ~Beside() override {
      stream_.reset();
      --beside;
    }
    void work(const std::function<void(void* handle)>& issue) override {
      current = stream_.get();
      issue(stream_.get());
      current = nullptr;
    }

   private:
    std::unique_ptr<LaggingStream> stream_ = std::make_unique<LaggingStream>(77);
  };

  LaggingStream& stream_here() {
    if (current) return *current;
    const std::lock_guard lock(mutex_);
    auto& stream = streams_[std::this_thread::get_id()];
    if (!stream) stream = std::make_unique<LaggingStream>(static_cast<unsigned>(streams_.size()));
    return *stream;
  }

  mutable std::mutex mutex_;
  std::deque<std::vector<std::byte>> blocks_;
  std::map<std::thread::id, std::unique_ptr<LaggingStream>> streams_;
  static inline thread_local LaggingStream* current = nullptr;
  static inline std::atomic<int> beside = 0;
};

}  // namespace penstock::testing
