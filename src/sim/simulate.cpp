// SPDX-License-Identifier: Apache-2.0
#include "sim/simulate.h"

#include <algorithm>
#include <array>
#include <deque>

#include "base/error.h"
#include "base/interruption.h"
#include "sim/costs/mean.h"
#include "sim/deadlock.h"
#include "sim/event_logs.h"
#include "sim/exchange_run.h"
#include "sim/fifo.h"
#include "sim/meetings.h"
#include "sim/peer_link.h"

namespace penstock::sim {
namespace {

using schedule::Channel;
using schedule::Event;
using schedule::Lane;
using schedule::Op;
using schedule::Program;

constexpr Seconds kPending = -1;  // end of an op that has not ended; times are never negative
using schedule::kLanes;

template <class Log>
struct Device {
  Device(int own_number, const schedule::DeviceProgram& own_list)
      : number(own_number), list(&own_list), log(own_list) {}

  int number;
  const schedule::DeviceProgram* list;
  Log log;                                  // events of the visited ops; wide: of all ops
  std::uint32_t next = 0;                   // first op not visited yet
  std::uint32_t open = 0;                   // number of receives and collectives begun and not ended
  std::uint32_t blocker = kNoOp;            // the op whose end the next op waits for
  bool queued = true;                       // in the list of devices to advance
  bool wide = false;                        // lanes run ahead of a stalled op of another lane
  std::array<Seconds, kLanes> ready{};      // when the lane takes its next op; kPending: unknown
  std::array<std::uint32_t, kLanes> met{};  // the collective that holds the lane, if ready is pending
  std::vector<PeerLink> links;              // outgoing
  std::array<Fifo<std::uint32_t>, kLanes> deferred;  // wide: visited ops that wait, per lane

  // Devices have few peers, so a linear search is faster than a map. The reference is valid until another
  // link is made.
  PeerLink& link_to(int peer) {
    for (PeerLink& link : links) {
      if (link.peer == peer) return link;
    }
    return links.emplace_back(peer);
  }
};

template <class Log>
class Run {
 public:
  Run(const Program& program, const Costs& costs) : program_(program), costs_(costs), meetings_(program) {
    devices_.reserve(program.devices.size());
    for (int d = 0; d < program.device_count(); ++d) {
      devices_.emplace_back(d, program.devices[d]);
      to_advance_.push_back(d);
    }
  }

  Simulation timeline() {
    advance_all();
    if (!stalls().empty()) {
      widen();
      advance_all();
    }
    Simulation simulation;
    if (auto stalled = stalls(); !stalled.empty())
      simulation.deadlock = describe(program_, std::move(stalled));
    for (Device& device : devices_) simulation.timeline.devices.push_back(std::move(device.log.events()));
    return simulation;
  }

  std::optional<Summary> summary() {
    advance_all();
    const auto unfinished = [](const Device& device) {
      return device.next < device.list->ops.size() || device.open > 0;
    };
    if (forgotten_ || std::ranges::any_of(devices_, unfinished)) return {};
    Summary summary;
    ActionTimes times;
    for (const Device& device : devices_) {
      summary.makespan = std::max(summary.makespan, device.log.last());
      summary.moves_bytes |= device.log.moves_bytes();
      summary.in_flight.push_back(device.log.in_flight());
      times.add(device.log.action_times());
    }
    for (const Device& device : devices_)
      summary.times.push_back(device.log.account().finish(summary.makespan));
    summary.equal_actions = times.equal();
    return summary;
  }

 private:
  using Device = sim::Device<Log>;

  void advance_all() {
    while (!to_advance_.empty() && !forgotten_) {
      allow_interruption();
      Device& device = devices_[to_advance_.front()];
      to_advance_.pop_front();
      device.queued = false;
      if (!to_advance_.empty()) fetch(devices_[to_advance_.front()]);
      device.wide ? advance_lanes(device) : advance(device);
    }
  }

  // Devices take turns after a few ops each, and there are more devices than fit in the L1 cache or the
  // hardware prefetcher follows. So each device prefetches its own ops two or three turns ahead from memory
  // (advance), and the first data of the next device from the L2 cache (fetch). GCC considers a function that
  // only prefetches free of side effects and drops its calls, unless it is inlined first.
  [[gnu::always_inline]] static void fetch(const Device& device) {
    const Op* op = device.list->ops.data() + device.next;
    for (const int i : {0, 2, 4}) __builtin_prefetch(op + i);  // two ops per cache line
    device.log.prefetch(device.next);
    for (const PeerLink& link : device.links) {
      for (const Channel channel : {Channel::Forward, Channel::Backward})
        __builtin_prefetch(&link.mailboxes[static_cast<std::size_t>(channel)]);
    }
  }

  // The fast path: ops in issue order until one must wait.
  void advance(Device& device) {
    constexpr std::uint32_t kAhead = 24;  // ops; 16 to 32 take the same time
    const auto& [ops, after] = *device.list;
    const auto count = static_cast<std::uint32_t>(ops.size());
    std::uint32_t next = device.next;
    for (; next < count && try_run(device, next); ++next) {
      __builtin_prefetch(ops.data() + next + kAhead);
      __builtin_prefetch(after.data() + ops[next].after_begin + kAhead);
      device.log.prefetch(next + kAhead);
    }
    device.next = next;
  }

  // The slow path, needed only if no device makes progress on the fast path: lanes overtake each other.
  void advance_lanes(Device& device) {
    for (bool progress = true; progress;) {
      progress = false;
      for (auto& lane : device.deferred) {
        while (!lane.empty() && try_run(device, lane.front())) {
          lane.pop_front();
          progress = true;
        }
      }
    }
    const std::vector<Op>& ops = device.list->ops;
    for (; device.next < ops.size(); ++device.next) {
      auto& lane = device.deferred[static_cast<int>(lane_of(ops[device.next].kind))];
      if (!lane.empty() || !try_run(device, device.next)) lane.push_back(device.next);
    }
  }

  void widen() {
    for (Device& device : devices_) {
      device.wide = true;
      device.log.complete(device.list->ops.size(), {0, kPending});
      wake(device);
    }
  }

  void wake(Device& device) {
    if (device.queued) return;
    device.queued = true;
    to_advance_.push_back(device.number);
  }

  // Runs the op if everything that it waits for has ended; else records the blocker.
  bool try_run(Device& device, std::uint32_t index) {
    const Op& op = device.list->ops[index];
    const Lane lane = lane_of(op.kind);
    Seconds& lane_ready = device.ready[static_cast<int>(lane)];
    Seconds start = lane_ready;
    if (start < 0) {
      device.blocker = device.met[static_cast<int>(lane)];
      return false;
    }
    for (const std::uint32_t wait : device.list->after_of(op)) {
      const Seconds end = look_up(device, wait).end;
      if (end < 0) {
        device.blocker = wait;
        return false;
      }
      start = std::max(start, end);
    }
    lane_ready = run(device, index, op, lane, start);
    return true;
  }

  // Runs an op that may start at `start`; returns when its lane takes the next op.
  Seconds run(Device& device, std::uint32_t index, const Op& op, Lane lane, Seconds start) {
    Event& event = device.log.begin(index);
    event = {start, kPending};
    if (lane == Lane::Send) {
      device.log.set_end(event, send(device, index, op, start));
      return start;
    }
    if (lane == Lane::Receive) {
      receive(device, index, op, event);
      return start;
    }
    if (is_collective(op.kind) && !schedule::meeting_of(device.number, op).alone())
      return meet(device, index, op, lane, start);
    end_op(device, index, lane, event, start + costs_.seconds(device.number, index, op));
    return event.end;
  }

  Seconds send(Device& device, std::uint32_t index, const Op& op, Seconds start) {
    PENSTOCK_CHECK(op.peer >= 0 && op.peer < program_.device_count(),
                   "a send goes to a device of the program");
    const Transfer transfer = costs_.transfer(device.number, index, op);
    PeerLink& link = device.link_to(op.peer);
    const Seconds arrival = transfer.arrival(start, link.free);
    Device& peer = devices_[op.peer];
    Mailbox& mailbox = link.mailboxes[static_cast<std::size_t>(channel_of(op.kind))];
    if (mailbox.waiting.empty()) {
      mailbox.arrivals.push_back({start, arrival});
    } else {
      const std::uint32_t receive = mailbox.waiting.front();
      mailbox.waiting.pop_front();
      end_receive(peer, look_up(peer, receive), {start, arrival});
      go_on_after(peer, receive);
    }
    return arrival;
  }

  void receive(Device& device, std::uint32_t index, const Op& op, Event& event) {
    PeerLink& link = devices_[op.peer].link_to(device.number);
    Mailbox& mailbox = link.mailboxes[static_cast<std::size_t>(channel_of(op.kind))];
    if (mailbox.arrivals.empty()) {
      mailbox.waiting.push_back(index);
      ++device.open;
      return;
    }
    end_receive(device, event, mailbox.arrivals.front());
    mailbox.arrivals.pop_front();
  }

  // The last member to arrive ends it for all.
  Seconds meet(Device& device, std::uint32_t index, const Op& op, Lane lane, Seconds start) {
    const Meeting& meeting =
        meetings_.come(device.number, index, start, costs_.seconds(device.number, index, op));
    if (!meeting.complete) {
      device.met[static_cast<int>(lane)] = device.blocker = index;
      ++device.open;
      return kPending;
    }
    for (const auto& [number, waiting] : meeting.here) {
      Device& other = devices_[number];
      Event& event = look_up(other, waiting);
      event.start = meeting.start;
      other.ready[static_cast<int>(lane)] = meeting.end();
      end_op(other, waiting, lane, event, meeting.end());
      if (number != device.number) go_on_after(other, waiting);
    }
    return meeting.end();
  }

  // For ops other than transfers.
  void end_op(Device& device, std::uint32_t index, Lane lane, Event& event, Seconds end) {
    device.log.set_end(event, end);
    if (lane == Lane::Compute) device.log.computed(index, event);
  }

  // The receive ends when it is posted and its message has arrived.
  void end_receive(Device& device, Event& event, const Event& message) {
    device.log.set_end(event, std::max(event.start, message.end));
    device.log.departed(event, message.start);
  }

  // The event of an op that began earlier.
  Event& look_up(Device& device, std::uint32_t index) {
    if (!device.log.holds(index)) forgotten_ = true;
    return device.log[index];
  }

  // Wakes the device after an open op has ended, if its next op may have waited for it.
  void go_on_after(Device& device, std::uint32_t index) {
    --device.open;
    if (!device.wide && device.blocker != index) return;
    device.blocker = kNoOp;
    wake(device);
  }

  std::vector<Stall> stalls() const {
    std::vector<Stall> found;
    for (int d = 0; d < program_.device_count(); ++d) {
      const std::uint32_t first = first_stalled(d);
      if (first != kNoOp) found.push_back({d, first, blocker_of(d, first)});
    }
    return found;
  }

  std::uint32_t first_stalled(int d) const {
    const Device& device = devices_[d];
    std::uint32_t first = device.next < device.list->ops.size() ? device.next : kNoOp;
    for (const auto& lane : device.deferred) {
      if (!lane.empty()) first = std::min(first, lane.front());
    }
    if (first != kNoOp || device.open == 0) return first;
    std::uint32_t open = 0;
    while (device.log[open].end != kPending) ++open;
    return open;
  }

  std::uint32_t blocker_of(int d, std::uint32_t index) const {
    const schedule::DeviceProgram& list = program_.devices[d];
    for (const std::uint32_t wait : list.after_of(list.ops[index])) {
      if (devices_[d].log[wait].end == kPending) return wait;
    }
    if (is_receive(list.ops[index].kind)) return index;
    for (std::uint32_t i = index; i > 0; --i) {  // an open collective earlier on the same lane
      const bool same_lane = lane_of(list.ops[i - 1].kind) == lane_of(list.ops[index].kind);
      if (same_lane) return devices_[d].log[i - 1].end == kPending ? i - 1 : index;
    }
    return index;
  }

  const Program& program_;
  const Costs& costs_;
  std::vector<Device> devices_;
  Meetings meetings_;
  std::deque<int> to_advance_;
  bool forgotten_ = false;  // a needed time was no longer in a log
};

}  // namespace

std::optional<Summary> summarize(const Program& program, const Costs& costs) {
  if (!program.exchanges.empty()) return {};
  return Run<RecentLog>(program, costs).summary();
}

Simulation simulate(const Program& program, const Costs& costs) {
  return program.exchanges.empty() ? Run<WholeLog>(program, costs).timeline()
                                   : simulate_exchange(program, costs);
}

}  // namespace penstock::sim
