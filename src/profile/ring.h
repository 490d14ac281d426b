// SPDX-License-Identifier: Apache-2.0
// Operands that take turns. A training step returns to a tensor after many others have evicted it from the
// CPU's caches; measured repeatedly on the same operands, a kernel seems up to twice as fast.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "profile/sampling.h"

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

// Number of operand sets of `bytes` bytes, of `footprint` bytes in all but from 3 to `most`, to rotate
// through. A figure that is measured once, without accuracy, has two: making more would take most of its
// time.
inline std::size_t cold_sets(const Effort& effort, std::int64_t bytes, std::int64_t footprint = 96 << 20,
                             std::int64_t most = 96) {
  if (effort.once()) return 2;
  return static_cast<std::size_t>(
      std::clamp<std::int64_t>(footprint / std::max<std::int64_t>(bytes, 1), 3, most));
}

}  // namespace penstock::profile
