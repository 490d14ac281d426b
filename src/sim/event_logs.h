// SPDX-License-Identifier: Apache-2.0
// What is kept of one device's ops while a program is simulated: all their times, which make the timeline, or
// only the latest ones and what they add up to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "schedule/timeline.h"
#include "sim/costs/mean.h"
#include "sim/in_flight.h"
#include "sim/lane_account.h"

namespace penstock::sim {

// Both logs have the same members. Ops begin in the order of the device's list, and in any order after
// complete().
class WholeLog {
 public:
  explicit WholeLog(const schedule::DeviceProgram& list) { events_.reserve(list.ops.size()); }

  bool holds(std::uint32_t /*index*/) const { return true; }
  schedule::Event& operator[](std::uint32_t index) { return events_[index]; }
  const schedule::Event& operator[](std::uint32_t index) const { return events_[index]; }

  schedule::Event& begin(std::uint32_t index) {
    return index < events_.size() ? events_[index] : events_.emplace_back();
  }
  void set_end(schedule::Event& event, Seconds end) { event.end = end; }
  void departed(schedule::Event&, Seconds) {}
  void computed(std::uint32_t, const schedule::Event&) {}
  void prefetch(std::uint32_t index) const { __builtin_prefetch(events_.data() + index, 1); }

  // Makes room for all ops; those not looked at so far have this event.
  void complete(std::size_t count, const schedule::Event& none) { events_.resize(count, none); }
  std::vector<schedule::Event>& events() { return events_; }

 private:
  std::vector<schedule::Event> events_;
};

// A ring of the events of the last kWindow ops of the list. holds() is false for older ops, whose events are
// overwritten, and for the oldest one in the ring: the next op overwrites it when it begins, though it may
// have waited for it.
class RecentLog {
 public:
  explicit RecentLog(const schedule::DeviceProgram& list)
      : ring_(kWindow), ops_(list.ops.data()), account_(list) {}

  bool holds(std::uint32_t index) const { return newest_ - index < kWindow - 1; }
  schedule::Event& operator[](std::uint32_t index) { return ring_[index % kWindow]; }
  const schedule::Event& operator[](std::uint32_t index) const { return ring_[index % kWindow]; }

  schedule::Event& begin(std::uint32_t index) {
    newest_ = index;
    bytes_ |= ops_[index].bytes;
    return (*this)[index];
  }
  void set_end(schedule::Event& event, Seconds end) {
    event.end = end;
    last_ = std::max(last_, end);
  }
  // A receive's message; from here on its event begins with the send.
  void departed(schedule::Event& receive, Seconds time) { receive.start = time; }
  void computed(std::uint32_t index, const schedule::Event& event) {
    const schedule::OpKind kind = ops_[index].kind;
    in_flight_.add(kind);
    if (is_action(kind)) action_times_.add(kind, event.end - event.start);
    account_.add(index, event,
                 [this](std::uint32_t wait) -> const schedule::Event& { return (*this)[wait]; });
  }
  void prefetch(std::uint32_t index) const { __builtin_prefetch(&(*this)[index], 1); }

  Seconds last() const { return last_; }
  bool moves_bytes() const { return bytes_ != 0; }
  const ActionTimes& action_times() const { return action_times_; }
  const LaneAccount& account() const { return account_; }
  const InFlight& in_flight() const { return in_flight_.peaks(); }

 private:
  // A kibibyte a device, so that hundreds of devices stay in the second-level cache. Most generators'
  // programs wait for ops at most 5 back; those of breadth-first and of offloading for ops further back.
  static constexpr std::uint32_t kWindow = 64;

  std::vector<schedule::Event> ring_;
  const schedule::Op* ops_;
  std::uint32_t newest_ = 0;
  Seconds last_ = 0;
  Bytes bytes_ = 0;
  ActionTimes action_times_;
  LaneAccount account_;
  InFlightCount in_flight_;
};

}  // namespace penstock::sim
