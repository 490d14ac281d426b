// SPDX-License-Identifier: Apache-2.0
#include "sim/simulate_help.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <tuple>

#include "sim/agenda.h"
#include "sim/channel_table.h"
#include "sim/deadlock.h"
#include "sim/fifo.h"
#include "sim/op_segments.h"

namespace penstock::sim {
namespace {

using schedule::Channel;
using schedule::Event;
using schedule::Help;
using schedule::HelpSpan;
using schedule::Lane;
using schedule::Op;
using schedule::OpKind;
using schedule::Program;
using What = Segment::What;

constexpr Seconds kPending = -1;
constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);

struct Mailbox {
  int arrived = 0;
  Fifo<std::uint32_t> waiting;  // receives
};

// Ops of several devices that begin together.
struct Meeting {
  std::size_t members = 0;
  std::vector<int> here;
};

struct Device {
  std::uint32_t next = 0;  // op
  bool in_op = false;
  bool working = false;  // on a segment or for another
  std::vector<Segment> segments;
  std::size_t segment = 0;
  std::vector<std::uint32_t> own;    // help of the op
  std::vector<Seconds> keys_arrive;  // of each
  int replies = 0;                   // not come yet
  Seconds waits_since = kPending;    // for replies
  std::deque<std::uint32_t> inbox;
  Meeting* meeting = nullptr;
  std::array<Seconds, 2> copies_ready{};
  ChannelTable<Mailbox> mailboxes;
  ChannelTable<Seconds> links;  // when each is free
};

class Run {
 public:
  Run(const Program& program, const Costs& costs)
      : program_(program), costs_(costs), devices_(program.devices.size()) {
    for (const schedule::DeviceProgram& list : program.devices)
      timeline_.devices.emplace_back(list.ops.size(), Event{0, kPending, 0});
    timeline_.help.resize(program.devices.size());
    for (std::uint32_t i = 0; i < program.help.size(); ++i) {
      const Help& help = program.help[i];
      own_[{help.owner, help.backward(), help.of.stage, help.of.micro_batch, help.of.slice}].push_back(i);
    }
  }

  Simulation finish() {
    for (int d = 0; d < program_.device_count(); ++d) happen({.what = Happening::What::Wake, .device = d});
    while (!agenda_.empty()) {
      const Happening now = agenda_.take();
      time_ = now.time;
      take(now);
      advance(now.device);
    }
    Simulation simulation;
    if (auto stalled = stalls(); !stalled.empty())
      simulation.deadlock = describe(program_, std::move(stalled));
    simulation.timeline = std::move(timeline_);
    return simulation;
  }

 private:
  using Key = std::tuple<int, bool, int, int, int>;

  void happen(const Happening& happening) { agenda_.add(happening); }

  const Op& op_of(int d) const { return program_.devices[d].ops[devices_[d].next]; }
  Event& event_of(int d) { return timeline_.devices[d][devices_[d].next]; }

  void take(const Happening& now) {
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

  // The device goes on as far as it can at this time.
  void advance(int d) {
    Device& device = devices_[d];
    while (!device.working) {
      if (!device.inbox.empty()) return serve(d);
      if (device.meeting) return try_meeting(*device.meeting);
      if (!(device.in_op ? run_segment(d) : begin_op(d))) return;
    }
  }

  void serve(int d) {
    Device& device = devices_[d];
    const std::uint32_t number = device.inbox.front();
    device.inbox.pop_front();
    end_wait(d);
    const Help& help = program_.help[number];
    const Device& owner = devices_[help.owner];
    const Seconds took = attention_seconds(costs_, help.owner, owner.next, op_of(help.owner), help.halves);
    timeline_.help[d].push_back({.help = number, .start = time_, .end = time_ + took});
    device.working = true;
    happen({.time = time_ + took, .what = Happening::What::Served, .device = d, .value = number});
  }

  // False when the device must wait.
  bool run_segment(int d) {
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
        if (device.replies > 0) return begin_wait(d);
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

  bool begin_wait(int d) {
    if (devices_[d].waits_since == kPending) devices_[d].waits_since = time_;
    return false;
  }

  void end_wait(int d) {
    Device& device = devices_[d];
    if (device.waits_since != kPending && time_ > device.waits_since) {
      timeline_.help[d].push_back({device.own.front(), device.waits_since, time_, true});
    }
    device.waits_since = kPending;
  }

  Seconds by_link(int from, int to, Bytes bytes, bool with_bytes = true) {
    const Op message{.kind = OpKind::SendForward, .peer = to, .bytes = bytes};
    const Transfer transfer = costs_.transfer(from, kNone, message);
    if (!with_bytes) return time_ + transfer.latency;
    Seconds& free = devices_[from].links.at(to, Channel::Control);
    free = std::max(free, time_) + transfer.occupied;
    return free + transfer.latency;
  }

  int layers_of(int owner) const {
    return simulated_layers(costs_.attention(owner, devices_[owner].next, op_of(owner)));
  }

  void post_keys(int d) {
    Device& device = devices_[d];
    device.keys_arrive.clear();
    for (const std::uint32_t number : device.own) {
      const Help& help = program_.help[number];
      device.keys_arrive.push_back(by_link(d, help.helper, help.request / layers_of(d)));
    }
  }

  void post_queries(int d) {
    Device& device = devices_[d];
    for (std::size_t i = 0; i < device.own.size(); ++i) {
      const int helper = program_.help[device.own[i]].helper;
      const Seconds arrives = std::max(device.keys_arrive[i], by_link(d, helper, 0, false));
      happen({.time = arrives, .what = Happening::What::Request, .device = helper, .value = device.own[i]});
      ++device.replies;
    }
  }

  void send_reply(int d, std::uint32_t number) {
    const Help& help = program_.help[number];
    const Seconds arrives = by_link(d, help.owner, help.reply / layers_of(help.owner));
    happen({.time = arrives, .what = Happening::What::Reply, .device = help.owner, .value = number});
  }

  // False when the device is through or waits for another op's end.
  bool begin_op(int d) {
    Device& device = devices_[d];
    const schedule::DeviceProgram& list = program_.devices[d];
    if (device.next == list.ops.size() || blocker_of(d) != kNone) return false;
    const Op& op = op_of(d);
    Event& event = event_of(d);
    event.start = time_;
    event.op = device.next;
    switch (lane_of(op.kind)) {
      case Lane::Send:
        event.end = send(d, op);
        break;
      case Lane::Receive:
        receive(d, op);
        break;
      case Lane::CopyOut:
      case Lane::CopyIn:
        copy(d, op);
        break;
      case Lane::Compute:
        return begin_compute(d, op);
    }
    ++device.next;
    return true;
  }

  std::uint32_t blocker_of(int d) const {
    const schedule::DeviceProgram& list = program_.devices[d];
    for (const std::uint32_t wait : list.after_of(list.ops[devices_[d].next])) {
      const Seconds end = timeline_.devices[d][wait].end;
      if (end == kPending || (end > time_ && !is_send(list.ops[wait].kind))) return wait;
    }
    return kNone;
  }

  Seconds send(int d, const Op& op) {
    const Transfer transfer = costs_.transfer(d, devices_[d].next, op);
    Seconds& free = devices_[d].links.at(op.peer, Channel::Control);
    free = std::max(free, time_) + transfer.occupied;
    happen({.time = free + transfer.latency,
            .what = Happening::What::Message,
            .device = op.peer,
            .from = d,
            .value = static_cast<std::uint32_t>(channel_of(op.kind))});
    return free + transfer.latency;
  }

  void receive(int d, const Op& op) {
    Mailbox& mailbox = devices_[d].mailboxes.at(op.peer, channel_of(op.kind));
    if (mailbox.arrived == 0) return mailbox.waiting.push_back(devices_[d].next);
    --mailbox.arrived;
    event_of(d).end = time_;
  }

  void arrive(int d, Mailbox& mailbox) {
    if (mailbox.waiting.empty()) return void(++mailbox.arrived);
    timeline_.devices[d][mailbox.waiting.front()].end = time_;
    mailbox.waiting.pop_front();
  }

  void copy(int d, const Op& op) {
    Device& device = devices_[d];
    Seconds& ready = device.copies_ready[op.kind == OpKind::Reload];
    Event& event = event_of(d);
    event.start = std::max(time_, ready);
    event.end = ready = event.start + costs_.seconds(d, device.next, op);
    happen({.time = event.end, .what = Happening::What::Wake, .device = d});
  }

  bool begin_compute(int d, const Op& op) {
    Device& device = devices_[d];
    const bool with_peer = op.kind == OpKind::ReduceGradients && op.peer >= 0;
    if (with_peer || op.kind == OpKind::VocabularyLoss) {
      join(d, op);
      return true;
    }
    device.own.clear();
    const auto own = own_.find({d, is_backward(op.kind), op.stage, op.micro_batch, op.slice});
    const bool attends = op.kind == OpKind::Forward || is_backward(op.kind);
    if (attends && own != own_.end()) device.own = own->second;
    int away = 0;
    for (const std::uint32_t number : device.own) away += program_.help[number].halves;
    begin_work(d, segments_of(costs_, d, device.next, op, away));
    return true;
  }

  void begin_work(int d, std::vector<Segment> segments) {
    Device& device = devices_[d];
    device.segments = std::move(segments);
    device.segment = 0;
    device.in_op = true;
  }

  // Reductions of two devices and visits of all: the k-th of each device meets the k-th of the others.
  void join(int d, const Op& op) {
    const bool visit = op.kind == OpKind::VocabularyLoss;
    const int low = visit ? -1 : std::min(d, op.peer), high = visit ? -1 : std::max(d, op.peer);
    const int nth = met_[{d, low, high}]++;
    Meeting& meeting = meetings_[{low, high, nth}];
    meeting.members = visit ? devices_.size() : 2;
    meeting.here.push_back(d);
    devices_[d].meeting = &meeting;
  }

  // Begins when all have come and nobody serves.
  void try_meeting(Meeting& meeting) {
    const bool all = meeting.here.size() == meeting.members;
    if (!all || std::ranges::any_of(meeting.here, [&](int d) { return devices_[d].working; })) return;
    Seconds took = 0;
    for (const int d : meeting.here) took = std::max(took, costs_.seconds(d, devices_[d].next, op_of(d)));
    for (const int d : meeting.here) {
      devices_[d].meeting = nullptr;
      event_of(d).start = time_;
      begin_work(d, {{What::Work, took}});
      happen({.time = time_, .what = Happening::What::Wake, .device = d});
    }
  }

  std::vector<Stall> stalls() const {
    std::vector<Stall> found;
    for (int d = 0; d < program_.device_count(); ++d) {
      const std::uint32_t next = devices_[d].next;
      if (next == program_.devices[d].ops.size()) continue;
      const std::uint32_t blocker = blocker_of(d);
      found.push_back({d, next, blocker == kNone ? next : blocker});
    }
    return found;
  }

  const Program& program_;
  const Costs& costs_;
  std::vector<Device> devices_;
  schedule::Timeline timeline_;
  std::map<Key, std::vector<std::uint32_t>> own_;
  std::map<std::tuple<int, int, int>, int> met_;           // [device, of whom] how often
  std::map<std::tuple<int, int, int>, Meeting> meetings_;  // [of whom, which]
  Agenda agenda_;
  Seconds time_ = 0;
};

}  // namespace

Simulation simulate_help(const Program& program, const Costs& costs) { return Run(program, costs).finish(); }

}  // namespace penstock::sim
