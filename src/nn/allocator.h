// SPDX-License-Identifier: Apache-2.0
// The allocator behind all CPU tensors: it knows for which rank and for what each block is, and reuses large
// blocks, since fresh pages cost as much as the arithmetic on them.
#pragma once

#include <ATen/core/Tensor.h>

#include "nn/ledger.h"

namespace penstock::nn {

// Puts the allocator behind c10's CPU allocator, once per process; later calls do nothing. Tensors made
// before keep their own memory and are in no ledger.
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

// From now on the tensor's storage counts in this category: what was made as a temporary is being kept, or
// the reverse. Undefined tensors and memory that is not the allocator's are left alone.
void recount(const at::Tensor& tensor, Category category);
void recount(const c10::Storage& storage, Category category);

// Bytes that the allocator holds for reuse, in no ledger. At most a tenth of the most that was ever in use at
// once.
Bytes cached_bytes();

// Large blocks (256 KiB and more) that had to be mapped afresh since the process began: what a step should do
// without once the first steps have been.
std::int64_t mapped_blocks();

}  // namespace penstock::nn
