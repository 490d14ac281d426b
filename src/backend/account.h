// SPDX-License-Identifier: Apache-2.0
// Whose memory is whose, for allocators: where new blocks of this thread count, and accounts of blocks whose
// allocator keeps none itself.
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

// As the scopes of this thread say (memory.h).
Account account_here(Bytes bytes);

// While alive, new blocks of this thread count in no ledger: they may be freed when it is gone.
class UncountedScope {
 public:
  UncountedScope();
  ~UncountedScope();
  UncountedScope(const UncountedScope&) = delete;
  UncountedScope& operator=(const UncountedScope&) = delete;

 private:
  Ledger* previous_;
};

// Accounts of a device's blocks. Any thread.
class BlockAccounts {
 public:
  void open(const void* block, Bytes bytes);
  void close(const void* block);
  void recount(const void* block, Category category);
  // Whether the address lies in a block that is open.
  bool holds(const void* address) const;

 private:
  mutable std::mutex mutex_;
  std::map<const std::byte*, Account> blocks_;  // by their first byte
};

}  // namespace penstock::backend
