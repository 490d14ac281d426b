// SPDX-License-Identifier: Apache-2.0
// Event logs of one device during a simulation: all times, for the timeline, or only the latest times and the
// totals.
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

// Both logs have the same interface. Ops begin in list order, or in any order after complete().
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

  // Makes room for all ops; ops that did not begin yet get the event `none`.
  void complete(std::size_t count, const schedule::Event& none) { events_.resize(count, none); }
  std::vector<schedule::Event>& events() { return events_; }

 private:
  std::vector<schedule::Event> events_;
};

// A ring with the events of the last kWindow ops of the list. holds() is false for older ops, whose events
// are overwritten. It is false for the oldest op in the ring too: the next op to begin overwrites that one
// while it may still wait for it.
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
  // Sets the start of a receive's event to the start of its message's send.
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
  // 1 KiB per device, so that hundreds of devices fit in the L2 cache. Programs of most generators wait for
  // ops at most 5 back; breadth-first and offloading wait for ops further back.
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
