// SPDX-License-Identifier: Apache-2.0
// Event simulation of a program with exchange (schedule/exchange.h). Not a longest path, because a device
// serves requests as they arrive: between any two segments of its own work (segments.h) and in every wait,
// each request as a whole. All else is as in simulate.h, except that each device issues its ops in order, as
// the interpreter does, and issues a collective only when all members have joined the previous one.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "sim/agenda.h"
#include "sim/channel_table.h"
#include "sim/fifo.h"
#include "sim/meetings.h"
#include "sim/segments.h"
#include "sim/simulate.h"

namespace penstock::sim {

Simulation simulate_exchange(const schedule::Program& program, const Costs& costs);

// State and event handlers: the devices' own ops in exchange_run.cpp, the work for each other in
// exchange_run_serving.cpp. Program and costs must outlive it.
class ExchangeRun {
 public:
  ExchangeRun(const schedule::Program& program, const Costs& costs);
  Simulation run();

 private:
  static constexpr Seconds kPending = -1;  // unknown so far; times are never negative

  struct Mailbox {
    int arrived = 0;
    Fifo<std::uint32_t> waiting;  // indices of posted receives
  };

  struct Device {
    std::uint32_t next = 0;  // index of the current or next op
    bool in_op = false;
    bool working = false;  // on a segment or on another device's request
    std::vector<Segment> segments;
    std::size_t segment = 0;
    std::vector<std::uint32_t> own;                 // exchanges of the current op
    std::vector<Seconds> keys_arrive;               // [index into own]
    int replies = 0;                                // outstanding
    Seconds waits_since = kPending;                 // start of the wait for replies
    std::deque<std::uint32_t> inbox;                // requests to serve
    const Meeting* meeting = nullptr;               // LOSS that waits for its members
    std::array<Seconds, schedule::kLanes> ready{};  // when the lane is free: copies and collectives
    ChannelTable<Mailbox> mailboxes;
    ChannelTable<Seconds> links;  // when the link is free
  };

  void happen(const Happening& happening) { agenda_.add(happening); }
  const schedule::Op& op_of(int d) const { return program_.devices[d].ops[devices_[d].next]; }
  schedule::Event& event_of(int d) { return timeline_.devices[d][devices_[d].next]; }

  void take(const Happening& now);
  void advance(int d);  // as far as the device can run at this time

  // Own ops. Return false if the device must wait or has finished.
  bool begin_op(int d);
  bool run_segment(int d);
  void issue(int d, const schedule::Op& op);  // for lanes other than compute
  std::uint32_t blocker_of(int d) const;
  Seconds send(int d, const schedule::Op& op);
  void receive(int d, const schedule::Op& op);
  void arrive(int d, Mailbox& mailbox);
  void copy(int d, const schedule::Op& op);
  void settle(int d, std::uint32_t index, Seconds start, Seconds end);
  void collective(int d, const schedule::Op& op);
  void begin_compute(int d, const schedule::Op& op);
  void begin_work(int d, std::vector<Segment> segments);
  void try_meeting(const Meeting& meeting);
  std::vector<Stall> stalls() const;

  // Work of devices for each other.
  void serve(int d);
  void send_reply(int d, std::uint32_t number);
  void post_keys(int d);
  void post_queries(int d);
  void begin_wait(int d);  // for replies
  void end_wait(int d);
  Seconds by_link(int from, int to, Bytes bytes, bool with_bytes = true);
  int layers_of(int owner) const;

  const schedule::Program& program_;
  const Costs& costs_;
  std::vector<Device> devices_;
  schedule::Timeline timeline_;
  std::map<std::pair<int, schedule::PassKey>, std::vector<std::uint32_t>> own_;
  Meetings meetings_;
  Agenda agenda_;
  Seconds time_ = 0;
};

}  // namespace penstock::sim
