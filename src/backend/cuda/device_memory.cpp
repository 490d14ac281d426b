// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/device_memory.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/ops/from_blob.h>
#include <c10/cuda/CUDAEvent.h>

#include "backend/copy.h"
#include "backend/device.h"

namespace penstock::backend {
namespace {

using Event = c10::cuda::CUDAEvent;

class CardMemory final : public DeviceMemory {
 public:
  bool holds(const void* address) const override {
    cudaPointerAttributes attributes{};
    const bool known = cudaPointerGetAttributes(&attributes, address) == cudaSuccess;
    return known && attributes.type == cudaMemoryTypeDevice;
  }

  Point point() override {
    const auto event = std::make_shared<Event>(cudaEventDisableTiming);
    event->record();
    return event;
  }
  void come_behind(const Point& point) override {
    static_cast<Event*>(point.get())->block(c10::cuda::getCurrentCUDAStream());
  }
  void wait_for(const Point& point) override { static_cast<Event*>(point.get())->synchronize(); }

  void copy(void* to, const void* from, std::size_t bytes) override { copy_bytes(to, from, bytes); }

  void add(void* into, const void* from, std::size_t count, std::size_t element) override {
    const auto options = on_device(element == sizeof(float) ? at::kFloat : at::kDouble);
    const auto numbers = static_cast<std::int64_t>(count);
    at::from_blob(into, {numbers}, options).add_(at::from_blob(const_cast<void*>(from), {numbers}, options));
  }

  std::shared_ptr<std::byte> host_room(std::size_t bytes) override {
    const auto room = std::make_shared<c10::DataPtr>(at::getHostAllocator(at::kCUDA)->allocate(bytes));
    return {room, static_cast<std::byte*>(room->get())};
  }
};

}  // namespace

DeviceMemory& card_memory() {
  static CardMemory memory;
  return memory;
}

}  // namespace penstock::backend
