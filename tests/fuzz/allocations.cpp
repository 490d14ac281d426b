// SPDX-License-Identifier: Apache-2.0
#include "fuzz/allocations.h"

#include <algorithm>
#include <cstdint>

// Of the address sanitizer; null without it.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void*, std::size_t),
                                                         void (*freed)(const volatile void*))
    __attribute__((weak));
extern "C" std::size_t __sanitizer_get_allocated_size(const volatile void*) __attribute__((weak));
extern "C" int __sanitizer_get_ownership(const volatile void*) __attribute__((weak));

namespace penstock::fuzz {
namespace {

// Of this thread: targets start no other.
thread_local std::int64_t live = 0, most = 0;

void note_allocated(const volatile void*, std::size_t bytes) {
  live += static_cast<std::int64_t>(bytes);
  most = std::max(most, live);
}

void note_freed(const volatile void* block) {
  if (block != nullptr && __sanitizer_get_ownership(block) != 0)
    live -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(block));
}

// What was there before must not lower the count when it goes; the inputs that are kept are small beside the
// limit, so that only a target's own frees could, by far less.
const bool installed = __sanitizer_install_malloc_and_free_hooks != nullptr &&
                       __sanitizer_install_malloc_and_free_hooks(note_allocated, note_freed) > 0;

}  // namespace

void begin_allocations() { live = most = 0; }

std::size_t most_allocated() { return static_cast<std::size_t>(most); }

bool counts_allocations() { return installed; }

}  // namespace penstock::fuzz
