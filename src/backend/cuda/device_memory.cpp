// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/device_memory.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/PeerToPeerAccess.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <exception>
#include <mutex>

#include "backend/account.h"
#include "backend/copy.h"
#include "backend/device.h"

namespace penstock::backend {
namespace {

using Event = c10::cuda::CUDAEvent;

// Gives this thread's GPU access to the memory of another one that holds the address, if the machine allows
// it. Copies between GPUs without access go through the host's memory.
void reach(const void* address) {
  cudaPointerAttributes attributes{};
  C10_CUDA_CHECK(cudaPointerGetAttributes(&attributes, address));
  const auto own = compute_device().index(), other = static_cast<c10::DeviceIndex>(attributes.device);
  if (attributes.type != cudaMemoryTypeDevice || other == own) return;
  static std::mutex mutex;  // LibTorch keeps its answers without one
  const std::lock_guard lock(mutex);
  try {
    at::cuda::get_p2p_access(own, other);
  } catch (const c10::Error&) {  // a GPU has access to a few others only; LibTorch does not ask again
  }
}

class GpuMemory final : public DeviceMemory {
 public:
  bool holds(const void* address) const override {
    if (!address) return false;
    cudaPointerAttributes attributes{};
    C10_CUDA_CHECK(cudaPointerGetAttributes(&attributes, address));
    return attributes.type == cudaMemoryTypeDevice;
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
  bool passed(const Point& point) override { return static_cast<Event*>(point.get())->query(); }

  void copy(void* to, const void* from, std::size_t bytes) override {
    reach(to);
    reach(from);
    copy_bytes(to, from, bytes);
  }

  void add(void* into, const void* from, std::size_t count, std::size_t element) override {
    const auto options = on_device(element == sizeof(float) ? at::kFloat : at::kDouble);
    const auto numbers = static_cast<std::int64_t>(count);
    at::from_blob(into, {numbers}, options).add_(at::from_blob(const_cast<void*>(from), {numbers}, options));
  }

  std::shared_ptr<std::byte> host_room(std::size_t bytes) override {
    const auto room = std::make_shared<c10::DataPtr>(at::getHostAllocator(at::kCUDA)->allocate(bytes));
    return {room, static_cast<std::byte*>(room->get())};
  }

  std::shared_ptr<std::byte> device_room(std::size_t bytes) override {
    const UncountedScope uncounted;
    const auto room =
        std::make_shared<at::Tensor>(at::empty({static_cast<std::int64_t>(bytes)}, on_device(at::kByte)));
    return {room, static_cast<std::byte*>(room->mutable_data_ptr())};
  }

  std::unique_ptr<Stream> stream() override { return std::make_unique<GpuStream>(); }

 private:
  // Not from LibTorch's pool, which shares 32 streams: work in one that waits for another rank would block
  // other users' messages.
  class GpuStream final : public Stream {
   public:
    GpuStream() = default;
    ~GpuStream() override {
      try {
        const c10::cuda::CUDAGuard guard(stream_.device_index());  // else a context on the thread's GPU
        cudaStreamDestroy(stream_.stream());
      } catch (const std::exception&) {  // the GPU is lost
      }
    }
    GpuStream(const GpuStream&) = delete;
    GpuStream& operator=(const GpuStream&) = delete;

    void work(const std::function<void(void* handle)>& issue) override {
      const c10::cuda::CUDAStreamGuard guard(stream_);  // also selects the stream's GPU
      issue(stream_.stream());
    }

   private:
    static cudaStream_t created() {
      int least = 0, greatest = 0;
      C10_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
      cudaStream_t stream = nullptr;
      C10_CUDA_CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
      return stream;
    }

    c10::cuda::CUDAStream stream_ = c10::cuda::getStreamFromExternal(created(), compute_device().index());
  };
};

}  // namespace

DeviceMemory& gpu_memory() {
  static GpuMemory memory;
  return memory;
}

}  // namespace penstock::backend
