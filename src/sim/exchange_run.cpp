// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange_run.h"

#include <algorithm>

#include "base/interruption.h"
#include "sim/deadlock.h"

namespace penstock::sim {

using schedule::Channel;
using schedule::Event;
using schedule::Exchange;
using schedule::Lane;
using schedule::Op;
using schedule::OpKind;
using schedule::Program;
using What = Segment::What;

ExchangeRun::ExchangeRun(const Program& program, const Costs& costs)
    : program_(program), costs_(costs), devices_(program.devices.size()), meetings_(program) {
  for (const schedule::DeviceProgram& list : program.devices)
    timeline_.devices.emplace_back(list.ops.size(), Event{0, kPending});
  timeline_.exchanges.resize(program.devices.size());
  for (std::uint32_t i = 0; i < program.exchanges.size(); ++i) {
    const Exchange& exchange = program.exchanges[i];
    own_[{exchange.owner, pass_of(exchange.of)}].push_back(i);
  }
}

Simulation ExchangeRun::run() {
  for (int d = 0; d < program_.device_count(); ++d) happen({.what = Happening::What::Wake, .device = d});
  while (!agenda_.empty()) {
    allow_interruption();
    const Happening now = agenda_.take();
    time_ = now.time;
    take(now);
    advance(now.device);
  }
  Simulation simulation;
  if (auto stalled = stalls(); !stalled.empty()) simulation.deadlock = describe(program_, std::move(stalled));
  simulation.timeline = std::move(timeline_);
  return simulation;
}

void ExchangeRun::take(const Happening& now) {
  Device& device = devices_[now.device];
  switch (now.what) {
    case Happening::What::Wake:
      return;
    case Happening::What::Worked:
      device.working = false;
      ++device.segment;
      return;
    case Happening::What::Served:
      device.working = false;
      return send_reply(now.device, now.value);
    case Happening::What::Message:
      return arrive(now.device, device.mailboxes.at(now.from, static_cast<Channel>(now.value)));
    case Happening::What::Request:
      device.inbox.push_back(now.value);
      return;
    case Happening::What::Reply:
      --device.replies;
      return;
  }
}

void ExchangeRun::advance(int d) {
  Device& device = devices_[d];
  while (!device.working) {
    if (!device.inbox.empty()) return serve(d);
    if (device.meeting) return try_meeting(*device.meeting);
    if (!(device.in_op ? run_segment(d) : begin_op(d))) return;
  }
}

bool ExchangeRun::run_segment(int d) {
  Device& device = devices_[d];
  if (device.segment == device.segments.size()) {
    event_of(d).end = time_;
    device.in_op = false;
    ++device.next;
    return true;
  }
  const Segment& segment = device.segments[device.segment];
  switch (segment.what) {
    case What::PostKeys:
      post_keys(d);
      break;
    case What::PostQueries:
      post_queries(d);
      break;
    case What::Merge:
      if (device.replies > 0) return begin_wait(d), false;
      end_wait(d);
      break;
    default:
      device.working = true;
      happen({.time = time_ + segment.seconds, .what = Happening::What::Worked, .device = d});
      return true;
  }
  ++device.segment;
  return true;
}

bool ExchangeRun::begin_op(int d) {
  Device& device = devices_[d];
  if (device.next == program_.devices[d].ops.size() || blocker_of(d) != kNoOp) return false;
  const Op& op = op_of(d);
  const Lane lane = lane_of(op.kind);
  if (device.ready[static_cast<int>(lane)] == kPending) return false;
  event_of(d).start = time_;
  if (lane == Lane::Compute) {
    begin_compute(d, op);
  } else {
    issue(d, op);
    ++device.next;
  }
  return true;
}

void ExchangeRun::issue(int d, const Op& op) {
  const Lane lane = lane_of(op.kind);
  if (lane == Lane::Send) {
    event_of(d).end = send(d, op);
  } else if (lane == Lane::Receive) {
    receive(d, op);
  } else if (lane == Lane::Collective && !schedule::meeting_of(d, op).alone()) {
    collective(d, op);
  } else {
    copy(d, op);
  }
}

std::uint32_t ExchangeRun::blocker_of(int d) const {
  const schedule::DeviceProgram& list = program_.devices[d];
  for (const std::uint32_t wait : list.after_of(list.ops[devices_[d].next])) {
    const Seconds end = timeline_.devices[d][wait].end;
    if (end == kPending || (end > time_ && !is_send(list.ops[wait].kind))) return wait;
  }
  return kNoOp;
}

Seconds ExchangeRun::send(int d, const Op& op) {
  const Transfer transfer = costs_.transfer(d, devices_[d].next, op);
  const Seconds arrival = transfer.arrival(time_, devices_[d].links.at(op.peer, Channel::Control));
  happen({.time = arrival,
          .what = Happening::What::Message,
          .device = op.peer,
          .from = d,
          .value = static_cast<std::uint32_t>(channel_of(op.kind))});
  return arrival;
}

void ExchangeRun::receive(int d, const Op& op) {
  Mailbox& mailbox = devices_[d].mailboxes.at(op.peer, channel_of(op.kind));
  if (mailbox.arrived == 0) return mailbox.waiting.push_back(devices_[d].next);
  --mailbox.arrived;
  event_of(d).end = time_;
}

void ExchangeRun::arrive(int d, Mailbox& mailbox) {
  if (mailbox.waiting.empty()) return void(++mailbox.arrived);
  timeline_.devices[d][mailbox.waiting.front()].end = time_;
  mailbox.waiting.pop_front();
}

// Also for a collective in which the device is alone.
void ExchangeRun::copy(int d, const Op& op) {
  const Seconds start = std::max(time_, devices_[d].ready[static_cast<int>(lane_of(op.kind))]);
  settle(d, devices_[d].next, start, start + costs_.seconds(d, devices_[d].next, op));
}

void ExchangeRun::settle(int d, std::uint32_t index, Seconds start, Seconds end) {
  Event& event = timeline_.devices[d][index];
  event.start = start;
  event.end = end;
  devices_[d].ready[static_cast<int>(lane_of(program_.devices[d].ops[index].kind))] = end;
  happen({.time = end, .what = Happening::What::Wake, .device = d});
}

// The last member to arrive ends it for all and wakes devices that wait to issue their next collective.
void ExchangeRun::collective(int d, const Op& op) {
  const std::uint32_t index = devices_[d].next;
  Seconds& ready = devices_[d].ready[static_cast<int>(Lane::Collective)];
  const Meeting& meeting = meetings_.come(d, index, std::max(time_, ready), costs_.seconds(d, index, op));
  ready = kPending;
  if (!meeting.complete) return;
  for (const auto& [member, at] : meeting.here) {
    settle(member, at, meeting.start, meeting.end());
    happen({.time = time_, .what = Happening::What::Wake, .device = member});
  }
}

void ExchangeRun::begin_compute(int d, const Op& op) {
  Device& device = devices_[d];
  if (is_collective(op.kind)) {
    device.meeting = &meetings_.come(d, device.next, time_, costs_.seconds(d, device.next, op));
    return;
  }
  device.own.clear();
  const auto own = own_.find({d, {is_backward(op.kind), op.key}});
  const bool attends = op.kind == OpKind::Forward || is_backward(op.kind);
  if (attends && own != own_.end()) device.own = own->second;
  double away = 0;
  for (const std::uint32_t number : device.own) away += costs_.share_of_attention(program_.exchanges[number]);
  begin_work(d, segments_of(costs_, d, device.next, op, away));
}

void ExchangeRun::begin_work(int d, std::vector<Segment> segments) {
  Device& device = devices_[d];
  device.segments = std::move(segments);
  device.segment = 0;
  device.in_op = true;
}

// The LOSS begins when all members have arrived and none of them is serving.
void ExchangeRun::try_meeting(const Meeting& meeting) {
  const auto works = [&](const auto& member) { return devices_[member.first].working; };
  if (!meeting.complete || std::ranges::any_of(meeting.here, works)) return;
  for (const auto& [d, op] : meeting.here) {
    devices_[d].meeting = nullptr;
    event_of(d).start = time_;
    begin_work(d, {{What::Work, meeting.took}});
    happen({.time = time_, .what = Happening::What::Wake, .device = d});
  }
}

std::vector<Stall> ExchangeRun::stalls() const {
  std::vector<Stall> found;
  for (int d = 0; d < program_.device_count(); ++d) {
    const std::vector<Event>& events = timeline_.devices[d];
    const std::uint32_t next = devices_[d].next;
    if (next < events.size()) {
      const std::uint32_t blocker = blocker_of(d);
      found.push_back({d, next, blocker == kNoOp ? next : blocker});
    } else if (const auto open = std::ranges::find(events, kPending, &Event::end); open != events.end()) {
      const auto index = static_cast<std::uint32_t>(open - events.begin());
      found.push_back({d, index, index});
    }
  }
  return found;
}

Simulation simulate_exchange(const Program& program, const Costs& costs) {
  return ExchangeRun(program, costs).run();
}

}  // namespace penstock::sim
