// SPDX-License-Identifier: Apache-2.0
#include "sim/idle.h"

#include <algorithm>

#include "schedule/exchange/time.h"
#include "sim/costs/mean.h"
#include "sim/costs/messages.h"
#include "sim/lane_account.h"
#include "sim/simulate.h"

namespace penstock::sim {
namespace {

using schedule::DeviceProgram;
using schedule::Event;
using schedule::ExchangeSpan;
using schedule::Lane;

// Waiting inside an op is idle time.
void add_waiting(DeviceTime& time, Seconds inside) {
  time.busy -= inside;
  time.idle.dependency += inside;
}

// Serving is busy time; inside an op it is already counted. The cause of the wait that it replaces is not
// recorded: in the ramps it is known, elsewhere most waits are for ops of other devices.
void add_serving(DeviceTime& time, const ExchangeSpan& span, Seconds inside) {
  Seconds outside = span.end - span.start - inside;
  const bool in_ramp = span.end <= time.first_start || span.start >= time.last_end;
  time.busy += outside;
  IdleCauses& idle = time.idle;
  Seconds* const usual = in_ramp ? &idle.ramp : &idle.dependency;
  for (Seconds* cause : {usual, &idle.dependency, &idle.transfer, &idle.copy, &idle.ramp}) {
    const Seconds part = std::min(outside, std::max(0.0, *cause));
    *cause -= part;
    outside -= part;
  }
}

// `departures`: one per receive, in issue order.
DeviceTime account_device(const DeviceProgram& list, const std::vector<Event>& events,
                          const std::vector<Seconds>& departures, Seconds makespan) {
  std::vector<Seconds> departed(list.ops.size());
  LaneAccount account(list);
  std::size_t receives = 0;
  for (std::uint32_t i = 0; i < list.ops.size(); ++i) {
    if (is_receive(list.ops[i].kind)) departed[i] = departures[receives++];
    if (lane_of(list.ops[i].kind) == Lane::Compute)
      account.add(i, events[i], [&](std::uint32_t wait) { return Event{departed[wait], events[wait].end}; });
  }
  return account.finish(makespan);
}

}  // namespace

std::vector<DeviceTime> account_time(const schedule::Program& program, const schedule::Timeline& timeline) {
  const std::vector<std::vector<Seconds>> departed = departures(program, timeline);
  const Seconds makespan = timeline.makespan();
  std::vector<DeviceTime> devices;
  for (std::size_t d = 0; d < program.devices.size(); ++d) {
    const DeviceProgram& list = program.devices[d];
    DeviceTime& time = devices.emplace_back(account_device(list, timeline.devices[d], departed[d], makespan));
    if (timeline.exchanges.empty()) continue;
    const std::vector<ExchangeSpan>& exchanges = timeline.exchanges[d];
    const std::vector<Seconds> inside = schedule::seconds_inside_ops(list, timeline.devices[d], exchanges);
    for (std::size_t i = 0; i < exchanges.size(); ++i) {
      if (exchanges[i].waiting) add_waiting(time, inside[i]);
    }
    for (std::size_t i = 0; i < exchanges.size(); ++i) {
      if (!exchanges[i].waiting) add_serving(time, exchanges[i], inside[i]);
    }
  }
  return devices;
}

void split_imbalance(std::vector<DeviceTime>& devices, const schedule::Program& program,
                     const schedule::Timeline& timeline, const Costs& costs) {
  const MeanCosts mean(program, timeline, costs);
  if (mean.all_equal()) return;
  schedule::Program equal;  // without exchange, which equal actions do not need
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
