// SPDX-License-Identifier: Apache-2.0
// A queue in one block of memory, a ring: smaller than std::deque, and it stays in the cache.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace penstock::sim {

template <class Value>
class Fifo {
 public:
  bool empty() const { return first_ == end_; }
  const Value& front() const { return ring_[first_ & (ring_.size() - 1)]; }
  void pop_front() { ++first_; }

  void push_back(const Value& value) {
    if (end_ - first_ == ring_.size()) grow();
    ring_[end_++ & (ring_.size() - 1)] = value;
  }

 private:
  void grow() {
    constexpr std::size_t kFirst = 4;
    std::vector<Value> greater(ring_.empty() ? kFirst : 2 * ring_.size());  // a power of two
    std::size_t count = 0;
    for (; !empty(); pop_front()) greater[count++] = front();
    ring_ = std::move(greater);
    first_ = 0;
    end_ = count;
  }

  std::vector<Value> ring_;
  std::size_t first_ = 0, end_ = 0;  // counted from the beginning, so that they only grow
};

}  // namespace penstock::sim
