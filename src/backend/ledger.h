// SPDX-License-Identifier: Apache-2.0
// Tensor bytes held by a rank, by category.
#pragma once

#include <array>
#include <atomic>

#include "base/units.h"
#include "model/memory/category.h"

namespace penstock::backend {

using model::Category;
using model::kTensorCategories;
using model::name_of;

// Live and peak bytes of one rank. Any thread may add and remove.
class Ledger {
 public:
  void add(Category category, Bytes bytes);
  void remove(Category category, Bytes bytes);

  Bytes live(Category category) const { return load(live_, category); }
  Bytes peak(Category category) const { return load(peak_, category); }  // since reset_peaks()
  Bytes live_total() const { return live_total_.load(std::memory_order_relaxed); }
  Bytes peak_total() const { return peak_total_.load(std::memory_order_relaxed); }

  void reset_peaks();  // to the live bytes

  // Returns the peak total since the last call and resets it. One reader.
  Bytes take_recent_peak();

 private:
  using Counters = std::array<std::atomic<Bytes>, kTensorCategories>;
  static Bytes load(const Counters& counters, Category category) {
    return counters[static_cast<std::size_t>(category)].load(std::memory_order_relaxed);
  }

  Counters live_{};
  Counters peak_{};
  std::atomic<Bytes> live_total_{0};
  std::atomic<Bytes> peak_total_{0};
  std::atomic<Bytes> recent_peak_{0};
};

}  // namespace penstock::backend
