// SPDX-License-Identifier: Apache-2.0
#include "backend/memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "backend/account.h"
#include "backend/large_pages.h"
#include "base/error.h"
#include "base/whole.h"

namespace penstock::backend {
namespace {

constexpr std::size_t kAlignment = 64;       // of the data; a cache line
constexpr std::size_t kReused = 256 * 1024;  // smallest block that all threads share
constexpr std::size_t kPage = 4096;

// Precedes the data of every block.
struct alignas(kAlignment) Header {
  Account account;       // for the bytes that the tensor requested
  std::size_t capacity;  // bytes of the whole block, header included
  Header* next;          // while unused: next small block of this capacity
};
static_assert(sizeof(Header) == kAlignment);

Header* start_block(void* block, std::size_t capacity) {
  return new (block) Header{.account = {}, .capacity = capacity, .next = nullptr};
}

Header* header_of(void* data) {
  return reinterpret_cast<Header*>(static_cast<std::byte*>(data) - sizeof(Header));
}

// Unused large blocks, by capacity. Used plus cached memory exceeds the peak use only slightly, so that the
// resident set matches the ledgers. The cost is a few blocks mapped again in each step.
class Cache {
 public:
  void* take(std::size_t capacity) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.lower_bound(capacity);
    // A much larger block would let the resident set outgrow the ledgers' count.
    const bool fits = found != blocks_.end() && found->first <= capacity + capacity / 8;
    in_use_ += fits ? found->first : capacity;
    most_in_use_ = std::max(most_in_use_, in_use_);
    if (!fits) {
      trim();
      return nullptr;
    }
    void* block = found->second->memory;
    forget(found);
    return block;
  }

  void give(void* block, std::size_t capacity) {
    const std::lock_guard lock(mutex_);
    in_use_ -= capacity;
    held_ += capacity;
    oldest_first_.push_back({block, {}});
    oldest_first_.back().place = blocks_.emplace(capacity, std::prev(oldest_first_.end()));
    trim();
  }

  // Of a block that take() did not have and that the system does not give either.
  void forget_taken(std::size_t capacity) {
    const std::lock_guard lock(mutex_);
    in_use_ -= capacity;
  }

  // The peak is forgotten too, or else later work of less could cache as much.
  void release() {
    const std::lock_guard lock(mutex_);
    while (held_ > 0) drop_oldest();
    most_in_use_ = in_use_;
  }

  std::size_t held() const {
    const std::lock_guard lock(mutex_);
    return held_;
  }

 private:
  struct Block;
  using Ages = std::list<Block>;
  using Sizes = std::multimap<std::size_t, Ages::iterator>;
  struct Block {
    void* memory;
    Sizes::iterator place;
  };

  void forget(Sizes::iterator place) {
    held_ -= place->first;
    oldest_first_.erase(place->second);
    blocks_.erase(place);
  }

  void trim() {
    constexpr std::size_t small = 32 << 20;  // little compared with the libraries' own
    const std::size_t spare = std::max(most_in_use_ / 64, std::min(most_in_use_ / 10, small));
    while (held_ > 0 && held_ + in_use_ > most_in_use_ + spare) drop_oldest();
  }

  void drop_oldest() {
    const Block oldest = oldest_first_.front();
    munmap(oldest.memory, oldest.place->first);
    forget(oldest.place);
  }

  mutable std::mutex mutex_;
  Ages oldest_first_;
  Sizes blocks_;  // by capacity
  std::size_t held_ = 0;
  std::size_t in_use_ = 0;
  std::size_t most_in_use_ = 0;
};

Cache& cache() {
  static auto* const instance = new Cache;  // never destroyed: static tensors may be freed later
  return *instance;
}

// A thread's unused small blocks, by exact capacity: steps allocate the same few sizes repeatedly, and malloc
// spends microseconds merging and splitting its free blocks. A block freed by a thread other than its
// allocator moves to the freeing thread.
class SmallBlocks {
 public:
  Header* take(std::size_t capacity) {
    Header*& first = first_[capacity / kAlignment];
    if (first == nullptr) return nullptr;
    held_ -= capacity;
    return std::exchange(first, first->next);
  }

  bool give(Header* block) {
    if (held_ + block->capacity > kMost) return false;
    held_ += block->capacity;
    block->next = std::exchange(first_[block->capacity / kAlignment], block);
    return true;
  }

  ~SmallBlocks();

 private:
  static constexpr std::size_t kMost = 4 << 20;
  std::array<Header*, kReused / kAlignment> first_{};
  std::size_t held_ = 0;
};

thread_local bool small_blocks_gone = false;  // static tensors may be freed later
thread_local SmallBlocks small_blocks;

SmallBlocks::~SmallBlocks() {
  small_blocks_gone = true;
  for (Header* block : first_) {
    while (block != nullptr) std::free(std::exchange(block, block->next));
  }
}

std::size_t rounded(std::size_t bytes) {
  const std::size_t unit = bytes < kReused ? kAlignment : bytes < 16 * kReused ? kPage : 16 * kPage;
  return round_up(bytes, unit);
}

std::atomic<std::int64_t> mapped{0};

// Unused blocks are given back before it fails.
Header* map_block(std::size_t capacity) {
  const auto map = [&] {
    return mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  };
  mapped.fetch_add(1, std::memory_order_relaxed);
  void* block = map();
  if (block == MAP_FAILED) {
    cache().release();
    block = map();
  }
  if (block == MAP_FAILED) {
    cache().forget_taken(capacity);
    throw RunError("out of memory: " + print_bytes(static_cast<Bytes>(capacity)) + " wanted");
  }
  ask_for_large_pages(block, capacity);
  return start_block(block, capacity);
}

Header* obtain(std::size_t capacity) {
  if (capacity >= kReused) {
    void* block = cache().take(capacity);
    return block ? static_cast<Header*>(block) : map_block(capacity);
  }
  if (Header* unused = small_blocks_gone ? nullptr : small_blocks.take(capacity)) return unused;
  void* block = std::aligned_alloc(kAlignment, capacity);
  if (block == nullptr)
    throw RunError("out of memory: " + print_bytes(static_cast<Bytes>(capacity)) + " wanted");
  return start_block(block, capacity);
}

void release(void* data) {
  if (data == nullptr) return;
  Header* header = header_of(data);
  header->account.close();
  if (header->capacity >= kReused) {
    cache().give(header, header->capacity);
  } else if (small_blocks_gone || !small_blocks.give(header)) {
    std::free(header);
  }
}

class AccountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (bytes == 0) return {nullptr, nullptr, &release, cpu};
    Header* header = obtain(rounded(bytes + sizeof(Header)));
    header->account = account_here(static_cast<Bytes>(bytes));
    header->account.open();
    void* data = header + 1;
    return {data, data, &release, cpu};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

}  // namespace

void install_allocator() {
  static AccountingAllocator allocator;
  static std::once_flag once;
  std::call_once(once, [] { c10::SetCPUAllocator(&allocator, 1); });
}

void recount(const c10::Storage& storage, Category category) {
  const c10::DataPtr& pointer = storage.data_ptr();
  if (storage.nbytes() == 0 || pointer.get_context() == nullptr || pointer.get_deleter() != &release) return;
  header_of(pointer.get_context())->account.move_to(category);
}

std::int64_t mapped_blocks() { return mapped.load(std::memory_order_relaxed); }

Bytes cached_bytes() { return static_cast<Bytes>(cache().held()); }

void release_cached() { cache().release(); }

}  // namespace penstock::backend
