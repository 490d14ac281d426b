// SPDX-License-Identifier: Apache-2.0
// A GPU for tests on machines without one: a device of LibTorch's (PrivateUse1) whose memory is the host's
// and whose operations are the host's. LibTorch refuses to mix its tensors with the host's, as it does with a
// GPU's; so a program that runs on it has all its tensors where they belong.
#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "backend/account.h"
#include "backend/device.h"
#include "backend/device_memory.h"
#include "backend/memory.h"
#include "backend/side_stream.h"
#include "comm/lagging_stream.h"

namespace penstock::backend {

c10::Device compute_device() { return {c10::DeviceType::PrivateUse1, 0}; }

void require_device(bool) {}

void take_turn(int) {}

namespace {

std::atomic<std::size_t> in_use{0};
std::atomic<std::size_t> reserved{0};  // the most in use since what was held for reuse was given back
std::atomic<long> blocks{0};           // so far

void raise_reserved() {
  const std::size_t now = in_use;
  std::size_t most = reserved;
  while (most < now && !reserved.compare_exchange_weak(most, now)) {
  }
}

// PENSTOCK_FAKE_GPU_MIB, or as good as endless.
std::size_t capacity() {
  static const char* const mebibytes = std::getenv("PENSTOCK_FAKE_GPU_MIB");
  static const std::size_t bytes = mebibytes ? std::stoul(mebibytes) << 20 : std::size_t{1} << 40;
  return bytes;
}

}  // namespace

std::optional<Gpu> gpu() {
  static const bool own = std::getenv("PENSTOCK_FAKE_GPU_OWN") != nullptr;  // every process has another
  const auto total = static_cast<Bytes>(capacity());
  return Gpu{"a fake GPU", 1, total, total - static_cast<Bytes>(reserved.load()),
             own ? std::to_string(getpid()) : "the only one"};
}

std::optional<Gpu> gpu_of_turn(int) { return gpu(); }

namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

BlockAccounts& accounts() {
  static auto* const instance = new BlockAccounts;
  return *instance;
}

// Whether the thread issues to its side stream. All is done when it is issued, but a block that was allocated
// for one stream and is freed in another's order would on a GPU be used again too early.
thread_local bool beside = false;

// Of any thread.
template <class T>
class SharedSet {
 public:
  void add(const T* element) {
    const std::lock_guard lock(mutex_);
    elements_.insert(element);
  }
  // Whether it was there.
  bool remove(const T* element) {
    const std::lock_guard lock(mutex_);
    return elements_.erase(element) > 0;
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    const std::lock_guard lock(mutex_);
    for (const T* element : elements_) visit(*element);
  }

 private:
  mutable std::mutex mutex_;
  std::set<const T*> elements_;
};

SharedSet<void>& side_blocks() {
  static auto* const instance = new SharedSet<void>;
  return *instance;
}

void release(void* block) {
  if (block && side_blocks().remove(block) != beside) {
    std::fputs("penstock: the fake GPU: a block is freed in the order of another stream\n", stderr);
    std::abort();
  }
  accounts().close(block);
  in_use -= malloc_usable_size(block);
  std::free(block);
}

// The streams of this process beside those of threads.
SharedSet<testing::LaggingStream>& streams_beside() {
  static auto* const instance = new SharedSet<testing::LaggingStream>;
  return *instance;
}

// As some calls of a driver's do.
void wait_until_idle() {
  streams_beside().for_each([](const testing::LaggingStream& stream) {
    while (!stream.idle()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  });
}

struct StreamBeside {
  StreamBeside() { streams_beside().add(&stream); }
  ~StreamBeside() { streams_beside().remove(&stream); }
  StreamBeside(const StreamBeside&) = delete;
  StreamBeside& operator=(const StreamBeside&) = delete;

  testing::LaggingStream stream{static_cast<unsigned>(getpid())};
};

class Memory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    constexpr std::size_t kLine = 64;
    constexpr int kOften = 16;
    if (++allocations_ % kOften == 0) wait_until_idle();
    static const char* const last = std::getenv("PENSTOCK_FAKE_GPU_LAST_BLOCK");
    TORCH_CHECK(last == nullptr || ++blocks < std::stol(last), "the fake GPU fell off the bus");
    TORCH_CHECK_WITH(OutOfMemoryError, in_use + bytes <= capacity(), "the fake GPU is full");
    void* const block = bytes > 0 ? std::aligned_alloc(kLine, (bytes + kLine - 1) / kLine * kLine) : nullptr;
    if (block) {
      in_use += malloc_usable_size(block);
      raise_reserved();
      if (beside) side_blocks().add(block);
      accounts().open(block, static_cast<Bytes>(bytes));
    }
    return {block, block, &release, compute_device()};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  std::atomic<int> allocations_ = 0;
};

Memory& memory() {
  static Memory instance;
  return instance;
}

// Work of threads is done when it is issued, so that none of their points is ahead of anyone. Streams beside
// them lag.
class FakeMemory final : public DeviceMemory {
 public:
  bool holds(const void* address) const override { return accounts().holds(address); }
  Point point() override {
    auto point = std::make_shared<testing::StreamPoint>();
    current ? current->issue([point] { point->set(); }) : point->set();
    return point;
  }
  void come_behind(const Point& point) override {
    current ? current->issue([passed = point_of(point)] { passed->wait(); }) : wait_for(point);
  }
  void wait_for(const Point& point) override { point_of(point)->wait(); }
  bool passed(const Point& point) override { return point_of(point)->is_set(); }
  void copy(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void add(void* into, const void* from, std::size_t count, std::size_t element) override {
    const auto type = element == sizeof(float) ? at::kFloat : at::kDouble;
    const auto numbers = static_cast<std::int64_t>(count);
    at::from_blob(into, {numbers}, type).add_(at::from_blob(const_cast<void*>(from), {numbers}, type));
  }
  std::shared_ptr<std::byte> host_room(std::size_t bytes) override {
    return {new std::byte[bytes], std::default_delete<std::byte[]>()};
  }
  std::shared_ptr<std::byte> device_room(std::size_t bytes) override {
    const auto room = std::make_shared<c10::DataPtr>(memory().allocate(bytes));
    return {room, static_cast<std::byte*>(room->get())};
  }
  std::unique_ptr<Stream> stream() override { return std::make_unique<Beside>(); }

 private:
  static std::shared_ptr<testing::StreamPoint> point_of(const Point& point) {
    return std::static_pointer_cast<testing::StreamPoint>(point);
  }

  class Beside final : public Stream {
   public:
    void work(const std::function<void(void* handle)>& issue) override {
      current = &stream_.stream;
      issue(current);
      current = nullptr;
    }

   private:
    StreamBeside stream_;
  };

  static inline thread_local testing::LaggingStream* current = nullptr;
};

// The same memory as a tensor of the host.
at::Tensor on_the_host(const at::Tensor& x) {
  if (x.device().is_cpu()) return x;
  return at::from_blob(x.mutable_data_ptr(), x.sizes(), x.strides(), at::dtype(x.scalar_type()));
}

at::Tensor empty(c10::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(sizes, &memory(), kKeys, type.value_or(at::kFloat), format);
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::optional<at::ScalarType> type,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(sizes, strides, &memory(), kKeys, type.value_or(at::kFloat));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  on_the_host(to).copy_(on_the_host(from));
  return to;
}

// Where an operation makes its result anew.
at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) {
    const at::Tensor room = at::detail::empty_generic(from.sizes(), &memory(), kKeys, to.scalar_type(), {});
    to.unsafeGetTensorImpl()->set_storage_keep_dtype(room.storage());
    to.unsafeGetTensorImpl()->set_sizes_contiguous(from.sizes());
  }
  return copy_from(from, to, false);
}

void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
}

}  // namespace

struct SideStream::State {};
struct SideStream::Scope::Guard {};

SideStream::SideStream() = default;
SideStream::~SideStream() = default;
SideStream::Scope::Scope(SideStream&) { beside = true; }
SideStream::Scope::~Scope() { beside = false; }

void install_allocator() {
  static FakeMemory memory;
  use_device_memory(&memory);
}

void recount(const c10::Storage& storage, Category category) {
  if (storage.nbytes() > 0) accounts().recount(storage.data(), category);
}

Bytes cached_bytes() { return static_cast<Bytes>(reserved.load() - in_use.load()); }
void release_cached() { reserved = in_use.load(); }
std::int64_t mapped_blocks() { return 0; }

TORCH_LIBRARY_IMPL(_, PrivateUse1, all) {
  all.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, own) {
  own.impl("empty.memory_format", &empty);
  own.impl("empty_strided", &empty_strided);
  own.impl("_copy_from", &copy_from);
  own.impl("_copy_from_and_resize", &copy_from_and_resize);
  own.impl("as_strided", &at::native::as_strided_tensorimpl);
  own.impl("view", &at::native::view);
  own.impl("_reshape_alias", &at::native::_reshape_alias);
}

namespace {

using Guard = c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::PrivateUse1>;
const c10::impl::DeviceGuardImplRegistrar guard(c10::DeviceType::PrivateUse1, new Guard);
const bool allocates = [] {
  c10::SetAllocator(c10::DeviceType::PrivateUse1, &memory());
  return true;
}();

}  // namespace
}  // namespace penstock::backend
