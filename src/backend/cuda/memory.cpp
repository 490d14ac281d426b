// SPDX-License-Identifier: Apache-2.0
#include "backend/memory.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <mutex>

#include "backend/account.h"
#include "backend/cuda/device_memory.h"
#include "backend/device.h"

namespace penstock::backend {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

BlockAccounts& accounts() {
  static auto* const instance = new BlockAccounts;  // never destroyed: static tensors may be freed later
  return *instance;
}

// Called on the thread that allocates or frees the block.
void note(const caching::TraceEntry& entry) {
  const auto* const block = reinterpret_cast<const void*>(entry.addr_);
  if (entry.action_ == caching::TraceEntry::ALLOC) accounts().open(block, static_cast<Bytes>(entry.size_));
  if (entry.action_ == caching::TraceEntry::FREE_REQUESTED) accounts().close(block);
}

constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

c10::CachingDeviceAllocator::DeviceStats statistics() {
  return caching::getDeviceStats(compute_device().index());
}

}  // namespace

void install_allocator() {
  static std::once_flag once;
  std::call_once(once, [] {
    at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
    caching::attachAllocatorTraceTracker(&note);
    use_device_memory(&gpu_memory());
  });
}

void recount(const c10::Storage& storage, Category category) {
  if (storage.nbytes() > 0) accounts().recount(storage.data(), category);
}

Bytes cached_bytes() {
  const auto now = statistics();
  return now.reserved_bytes[kAll].current - now.allocated_bytes[kAll].current;
}

void release_cached() { caching::emptyCache(); }

std::int64_t mapped_blocks() { return statistics().segment[kAll].allocated; }

}  // namespace penstock::backend
