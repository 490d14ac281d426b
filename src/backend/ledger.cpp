// SPDX-License-Identifier: Apache-2.0
#include "backend/ledger.h"

namespace penstock::backend {
namespace {

void raise_to(std::atomic<Bytes>& peak, Bytes value) {
  Bytes seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

void Ledger::add(Category category, Bytes bytes) {
  const auto index = static_cast<std::size_t>(category);
  raise_to(peak_[index], live_[index].fetch_add(bytes, std::memory_order_relaxed) + bytes);
  const Bytes total = live_total_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  raise_to(peak_total_, total);
  raise_to(recent_peak_, total);
}

void Ledger::remove(Category category, Bytes bytes) {
  live_[static_cast<std::size_t>(category)].fetch_sub(bytes, std::memory_order_relaxed);
  live_total_.fetch_sub(bytes, std::memory_order_relaxed);
}

Bytes Ledger::take_recent_peak() { return recent_peak_.exchange(live_total(), std::memory_order_relaxed); }

void Ledger::reset_peaks() {
  for (std::size_t index = 0; index < kTensorCategories; ++index) {
    peak_[index].store(live_[index].load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  peak_total_.store(live_total(), std::memory_order_relaxed);
}

}  // namespace penstock::backend
