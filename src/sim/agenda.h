// SPDX-License-Identifier: Apache-2.0
// The event queue of a simulation, ordered by time.
#pragma once

#include <cstdint>
#include <queue>
#include <tuple>

#include "base/units.h"

namespace penstock::sim {

// An event of a device.
struct Happening {
  enum class What : std::uint8_t {
    Wake,     // checks whether it can continue
    Worked,   // a segment of its own work is done
    Served,   // the request of another device is done (value: exchange)
    Message,  // a message has arrived (from, value: channel)
    Request,  // an exchange request has arrived (value: exchange)
    Reply,    // the reply to its own request has arrived
  };
  Seconds time = 0;
  What what = What::Wake;
  int device = 0;
  int from = 0;
  std::uint32_t value = 0;
};

// Ties break in insertion order.
class Agenda {
 public:
  bool empty() const { return entries_.empty(); }

  void add(const Happening& happening) { entries_.push({happening, added_++}); }

  Happening take() {
    const Happening first = entries_.top().happening;
    entries_.pop();
    return first;
  }

 private:
  struct Entry {
    Happening happening;
    std::uint64_t number;
    bool operator<(const Entry& other) const {
      return std::tie(happening.time, number) > std::tie(other.happening.time, other.number);
    }
  };
  std::priority_queue<Entry> entries_;
  std::uint64_t added_ = 0;
};

}  // namespace penstock::sim
