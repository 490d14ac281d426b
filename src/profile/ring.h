// SPDX-License-Identifier: Apache-2.0
// Operands that take turns: a training step comes back to a tensor after many others, which have taken its
// place in the processor's caches. Measured on the same operands again and again, a kernel seems up to twice
// as fast.
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

// Sets of operands of so many bytes that are in use before the first one's turn comes again: 96 MiB of them,
// but not more than the tensors of a few layers.
inline std::size_t cold_sets(std::int64_t bytes) {
  constexpr std::int64_t kFootprint = 96 << 20;
  return static_cast<std::size_t>(
      std::clamp<std::int64_t>(kFootprint / std::max<std::int64_t>(bytes, 1), 3, 96));
}

}  // namespace penstock::profile
