// SPDX-License-Identifier: Apache-2.0
#include "backend/account.h"

#include <utility>

#include "backend/memory.h"

namespace penstock::backend {
namespace {

thread_local Ledger* ledger_here = nullptr;
thread_local Category category_here = Category::Transient;

}  // namespace

LedgerScope::LedgerScope(Ledger& ledger) : previous_(std::exchange(ledger_here, &ledger)) {}
LedgerScope::~LedgerScope() { ledger_here = previous_; }

UncountedScope::UncountedScope() : previous_(std::exchange(ledger_here, nullptr)) {}
UncountedScope::~UncountedScope() { ledger_here = previous_; }

CategoryScope::CategoryScope(Category category) : previous_(std::exchange(category_here, category)) {}
CategoryScope::~CategoryScope() { category_here = previous_; }

Account account_here(Bytes bytes) { return {ledger_here, category_here, bytes}; }

void recount(const at::Tensor& tensor, Category category) {
  if (tensor.defined()) recount(tensor.storage(), category);
}

void BlockAccounts::open(const void* block, Bytes bytes) {
  const Account account = account_here(bytes);
  account.open();
  const std::lock_guard lock(mutex_);
  blocks_.insert_or_assign(static_cast<const std::byte*>(block), account);
}

void BlockAccounts::close(const void* block) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.extract(static_cast<const std::byte*>(block));
  if (!found.empty()) found.mapped().close();
}

void BlockAccounts::recount(const void* block, Category category) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<const std::byte*>(block));
  if (found != blocks_.end()) found->second.move_to(category);
}

bool BlockAccounts::holds(const void* address) const {
  const auto* const byte = static_cast<const std::byte*>(address);
  const std::lock_guard lock(mutex_);
  auto after = blocks_.upper_bound(byte);
  if (after == blocks_.begin()) return false;
  const auto& [first, account] = *std::prev(after);
  return byte < first + account.bytes;
}

}  // namespace penstock::backend
