// SPDX-License-Identifier: Apache-2.0
// A queue in one block of memory: smaller than std::deque, and the front stays in the cache.
#pragma once

#include <cstddef>
#include <vector>

namespace penstock::sim {

template <class Value>
class Fifo {
 public:
  bool empty() const { return head_ == values_.size(); }
  const Value& front() const { return values_[head_]; }
  void push_back(const Value& value) { values_.push_back(value); }

  void pop_front() {
    constexpr std::size_t kWorthMoving = 64;
    ++head_;
    if (empty()) {
      values_.clear();
      head_ = 0;
    } else if (head_ >= kWorthMoving && 2 * head_ >= values_.size()) {
      values_.erase(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
  }

 private:
  std::vector<Value> values_;
  std::size_t head_ = 0;
};

}  // namespace penstock::sim
