// SPDX-License-Identifier: Apache-2.0
// How many bytes of tensors a rank holds, by what they are for.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/units.h"

namespace penstock::nn {

enum class Category : std::uint8_t {
  Weights,
  Gradients,
  Optimizer,      // f32 masters beside bf16 weights, and the moments
  Activations,    // records: saved between a forward and its backward
  WeightRecords,  // kept between a backward for the input and the one for the weights
  KvGradients,    // accumulators of keys' and values' gradients
  Logits,         // tiles of logits, and the kept gradient of the loss
  Transfers,      // messages under way or waiting to be used
  Transient,      // everything else
};
inline constexpr int kCategories = 9;
std::string_view name_of(Category category);  // "weights", ..., "kv_gradients", "transient"

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

  // The greatest total since the last call, which begins a new count. One reader.
  Bytes take_recent_peak();

 private:
  using Counters = std::array<std::atomic<Bytes>, kCategories>;
  static Bytes load(const Counters& counters, Category category) {
    return counters[static_cast<std::size_t>(category)].load(std::memory_order_relaxed);
  }

  Counters live_{};
  Counters peak_{};
  std::atomic<Bytes> live_total_{0};
  std::atomic<Bytes> peak_total_{0};
  std::atomic<Bytes> recent_peak_{0};
};

}  // namespace penstock::nn
