// SPDX-License-Identifier: Apache-2.0
// A queue as a ring in one block of memory: smaller than std::deque and cache-friendly.
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
  std::size_t first_ = 0, end_ = 0;  // counts of all pops and pushes; position in the ring: modulo its size
};

}  // namespace penstock::sim
