// SPDX-License-Identifier: Apache-2.0
// Memory of the compute device's tensors, each block accounted to a rank and a category. On the CPU by an
// allocator of our own, which reuses blocks: large ones, since fresh pages cost as much as the arithmetic on
// them, and up to 4 MiB of small ones a thread. On a card by LibTorch's.
#pragma once

#include <ATen/core/Tensor.h>

#include "backend/ledger.h"

namespace penstock::backend {

// Once per process; later calls do nothing. Tensors made before keep their memory and are not counted. Of a
// card it also lets messages use the memory (device_memory.h).
void install_allocator();

// While alive, tensors made on this thread count in `ledger`, as Transient. Scopes nest. The ledger must
// outlive the tensors.
class LedgerScope {
 public:
  explicit LedgerScope(Ledger& ledger);
  ~LedgerScope();
  LedgerScope(const LedgerScope&) = delete;
  LedgerScope& operator=(const LedgerScope&) = delete;

 private:
  Ledger* previous_;
};

// While alive, tensors made on this thread count in this category.
class CategoryScope {
 public:
  explicit CategoryScope(Category category);
  ~CategoryScope();
  CategoryScope(const CategoryScope&) = delete;
  CategoryScope& operator=(const CategoryScope&) = delete;

 private:
  Category previous_;
};

// Moves the tensor's storage to this category, such as a temporary that is now kept, or the reverse.
// Undefined tensors and memory of other allocators are ignored.
void recount(const at::Tensor& tensor, Category category);
void recount(const c10::Storage& storage, Category category);

// Bytes of large blocks held for reuse, not counted in any ledger. On the CPU they and what is in use exceed
// the peak use by at most a 64th, or by 32 MiB where that is more, but then by no more than a tenth.
Bytes cached_bytes();

// Gives a card's blocks that are held for reuse back to it; on the CPU, where few are held, nothing.
void release_cached();

// Large blocks (of 256 KiB and more; of a card, its segments) mapped since the process began. After the first
// steps the count should not grow, but by a few a step on the CPU where the peak is large.
std::int64_t mapped_blocks();

}  // namespace penstock::backend
