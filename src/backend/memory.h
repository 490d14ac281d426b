// SPDX-License-Identifier: Apache-2.0
// Memory of the compute device's tensors, each block accounted to a rank and a category. The CPU has our own
// allocator, which reuses large blocks, since fresh pages cost as much as the arithmetic on them, and up to
// 4 MiB of small blocks per thread. A GPU has LibTorch's.
#pragma once

#include <ATen/core/Tensor.h>

#include "backend/ledger.h"

namespace penstock::backend {

// Call once per process; later calls are no-ops. Earlier tensors keep their memory and are not counted. On a
// GPU this also makes its memory available to messages (device_memory.h).
void install_allocator();

// While alive, tensors allocated on this thread count in `ledger`, by default as Transient. Scopes nest. The
// ledger must outlive the tensors.
class LedgerScope {
 public:
  explicit LedgerScope(Ledger& ledger);
  ~LedgerScope();
  LedgerScope(const LedgerScope&) = delete;
  LedgerScope& operator=(const LedgerScope&) = delete;

 private:
  Ledger* previous_;
};

// While alive, tensors allocated on this thread count in this category.
class CategoryScope {
 public:
  explicit CategoryScope(Category category);
  ~CategoryScope();
  CategoryScope(const CategoryScope&) = delete;
  CategoryScope& operator=(const CategoryScope&) = delete;

 private:
  Category previous_;
};

// Moves the tensor's storage to this category, such as a temporary that is now kept, or the reverse. Ignores
// undefined tensors and memory from other allocators.
void recount(const at::Tensor& tensor, Category category);
void recount(const c10::Storage& storage, Category category);

// Bytes of large blocks held for reuse, not counted in any ledger. On the CPU, cached plus used bytes exceed
// the peak use by at most max(peak / 64, min(peak / 10, 32 MiB)).
Bytes cached_bytes();

// Frees the large blocks held for reuse. On the CPU also forgets the peak use that bounds them.
void release_cached();

// Number of large blocks (256 KiB or more; on a GPU, segments) mapped since the process began. After the
// first steps it should stay constant, except for a few per step on the CPU if the peak is large.
std::int64_t mapped_blocks();

}  // namespace penstock::backend
