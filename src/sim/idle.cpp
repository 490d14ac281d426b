// SPDX-License-Identifier: Apache-2.0
#include "sim/idle.h"

#include <algorithm>
#include <span>

#include "schedule/exchange/time.h"
#include "sim/costs/mean.h"
#include "sim/costs/messages.h"
#include "sim/simulate.h"

namespace penstock::sim {
namespace {

using schedule::DeviceProgram;
using schedule::Event;
using schedule::ExchangeSpan;
using schedule::Lane;
using schedule::Op;
using schedule::OpKind;

// Walks the ops of one device and attributes the gaps of its compute lane.
class Account {
 public:
  Account(const DeviceProgram& list, const std::vector<Event>& events, const std::vector<Seconds>& departures,
          std::span<const ExchangeSpan> exchange)
      : list_(list), events_(events), exchanges_(exchange), departed_(list.ops.size()) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < list.ops.size(); ++i) {
      if (is_receive(list.ops[i].kind)) departed_[i] = departures[next++];
    }
  }

  DeviceTime finish(Seconds makespan) {
    find_span();
    for (std::size_t i = 0; i < list_.ops.size(); ++i) {
      if (lane_of(list_.ops[i].kind) == Lane::Compute) visit(list_.ops[i], events_[i]);
    }
    time_.idle.ramp += makespan - previous_end_;
    const std::vector<Seconds> inside = schedule::seconds_inside_ops(list_, events_, exchanges_);
    for (std::size_t i = 0; i < exchanges_.size(); ++i) visit(exchanges_[i], inside[i]);
    return time_;
  }

 private:
  void find_span() {
    bool first = true;
    for (std::size_t i = 0; i < list_.ops.size(); ++i) {
      if (!is_action(list_.ops[i].kind)) continue;
      if (first) time_.first_start = events_[i].start;
      time_.last_end = events_[i].end;
      first = false;
    }
  }

  // Waiting inside an op is no work; serving is, wherever it was: inside an op it has been counted already.
  void visit(const ExchangeSpan& span, Seconds inside) {
    if (span.waiting) {
      time_.busy -= inside;
      time_.idle.dependency += inside;
      return;
    }
    const Seconds outside = span.end - span.start - inside;
    const bool in_ramp = span.end <= time_.first_start || span.start >= time_.last_end;
    time_.busy += outside;
    (in_ramp ? time_.idle.ramp : time_.idle.dependency) -= outside;
  }

  void visit(const Op& op, const Event& event) {
    time_.busy += event.end - event.start;
    if (event.start > previous_end_) {
      const bool outside = event.start <= time_.first_start || previous_end_ >= time_.last_end;
      outside ? void(time_.idle.ramp += event.start - previous_end_)
              : explain(op, previous_end_, event.start);
    }
    previous_end_ = std::max(previous_end_, event.end);
  }

  // The gap [begin, end) before an op: first producers are not done, then bytes fly, then a copy is not done.
  void explain(const Op& op, Seconds begin, Seconds end) {
    Seconds produced = begin;
    Seconds arrived = begin;
    Seconds copied = begin;
    for (const std::uint32_t wait : list_.after_of(op)) {
      const OpKind kind = list_.ops[wait].kind;
      if (is_receive(kind)) {
        produced = std::max(produced, departed_[wait]);
        arrived = std::max(arrived, events_[wait].end);
      } else if (kind == OpKind::Reload || kind == OpKind::Offload) {
        copied = std::max(copied, events_[wait].end);
      }
    }
    produced = std::min(produced, end);
    arrived = std::clamp(arrived, produced, end);
    copied = std::clamp(copied, arrived, end);
    time_.idle.transfer += arrived - produced;
    time_.idle.copy += copied - arrived;
    time_.idle.dependency += (produced - begin) + (end - copied);
  }

  const DeviceProgram& list_;
  const std::vector<Event>& events_;
  const std::span<const ExchangeSpan> exchanges_;
  std::vector<Seconds> departed_;  // [op]: of receives
  DeviceTime time_;
  Seconds previous_end_ = 0;
};

}  // namespace

std::vector<DeviceTime> account_time(const schedule::Program& program, const schedule::Timeline& timeline) {
  const std::vector<std::vector<Seconds>> departed = departures(program, timeline);
  const Seconds makespan = timeline.makespan();
  std::vector<DeviceTime> devices;
  for (std::size_t d = 0; d < program.devices.size(); ++d) {
    devices.push_back(
        Account(program.devices[d], timeline.devices[d], departed[d],
                timeline.exchanges.empty() ? std::span<const ExchangeSpan>() : timeline.exchanges[d])
            .finish(makespan));
  }
  return devices;
}

void split_imbalance(std::vector<DeviceTime>& devices, const schedule::Program& program,
                     const schedule::Timeline& timeline, const Costs& costs) {
  const MeanCosts mean(program, timeline, costs);
  if (mean.all_equal()) return;
  schedule::Program equal;  // equal ones need no exchange
  if (!program.exchanges.empty()) (equal = program).exchanges.clear();
  const schedule::Program& plain = program.exchanges.empty() ? program : equal;
  const Simulation even = simulate(plain, mean);
  const std::vector<DeviceTime> even_devices = account_time(plain, even.timeline);
  for (std::size_t d = 0; d < devices.size(); ++d) {
    IdleCauses& idle = devices[d].idle;
    idle.imbalance = std::clamp(idle.dependency - even_devices[d].idle.dependency, 0.0, idle.dependency);
    idle.dependency -= idle.imbalance;
  }
}

}  // namespace penstock::sim
