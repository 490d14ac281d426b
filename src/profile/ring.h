// SPDX-License-Identifier: Apache-2.0
// Operands that take turns. A training step returns to a tensor after many others have evicted it from the
// processor's caches; measured repeatedly on the same operands, a kernel seems up to twice as fast.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::profile {

template <class T>
class Ring {
 public:
  template <class Make>
  Ring(std::size_t count, Make&& make) {
    items_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) items_.push_back(make());
  }
  T& next() { return items_[turn_ = (turn_ + 1) % items_.size()]; }
  std::size_t size() const { return items_.size(); }

 private:
  std::vector<T> items_;
  std::size_t turn_ = 0;
};

// Number of operand sets of `bytes` bytes to rotate through: 96 MiB in all, but not more than the tensors of
// a few layers.
inline std::size_t cold_sets(std::int64_t bytes) {
  constexpr std::int64_t kFootprint = 96 << 20;
  return static_cast<std::size_t>(
      std::clamp<std::int64_t>(kFootprint / std::max<std::int64_t>(bytes, 1), 3, 96));
}

}  // namespace penstock::profile
