// SPDX-License-Identifier: Apache-2.0
// Memory accounting for allocators: the ledger and category that new blocks of this thread count in, and
// per-block accounts for allocators that keep none.
#pragma once

#include <map>
#include <mutex>

#include "backend/ledger.h"

namespace penstock::backend {

struct Account {
  Ledger* ledger = nullptr;  // null: not counted
  Category category = Category::Transient;
  Bytes bytes = 0;

  void open() const { change(+1); }
  void close() const { change(-1); }
  void move_to(Category other) {
    if (category == other) return;
    close();
    category = other;
    open();
  }

 private:
  void change(int sign) const {
    if (ledger) sign > 0 ? ledger->add(category, bytes) : ledger->remove(category, bytes);
  }
};

// The account that this thread's scopes select (memory.h).
Account account_here(Bytes bytes);

// While alive, new blocks of this thread count in no ledger, so they may outlive every ledger.
class UncountedScope {
 public:
  UncountedScope();
  ~UncountedScope();
  UncountedScope(const UncountedScope&) = delete;
  UncountedScope& operator=(const UncountedScope&) = delete;

 private:
  Ledger* previous_;
};

// Accounts for a device's blocks. Any thread.
class BlockAccounts {
 public:
  void open(const void* block, Bytes bytes);
  void close(const void* block);
  void recount(const void* block, Category category);
  // Returns whether the address lies in an open block.
  bool holds(const void* address) const;

 private:
  mutable std::mutex mutex_;
  std::map<const std::byte*, Account> blocks_;  // keyed by first byte
};

}  // namespace penstock::backend
