// SPDX-License-Identifier: Apache-2.0
#include "report/messages.h"

#include <cstddef>
#include <map>
#include <tuple>

#include "base/error.h"

namespace penstock::report {
namespace {

using Route = std::tuple<int, int, schedule::Channel>;  // source, destination, channel

std::map<Route, std::vector<std::uint32_t>> receives_by_route(const schedule::Program& program) {
  std::map<Route, std::vector<std::uint32_t>> receives;
  for (int device = 0; device < program.device_count(); ++device) {
    const auto& ops = program.devices[device].ops;
    for (std::uint32_t i = 0; i < ops.size(); ++i) {
      if (!is_receive(ops[i].kind)) continue;
      receives[{ops[i].peer, device, channel_of(ops[i].kind)}].push_back(i);
    }
  }
  return receives;
}

}  // namespace

std::vector<Message> match_messages(const schedule::Program& program) {
  const auto receives = receives_by_route(program);
  std::map<Route, std::size_t> taken;
  std::vector<Message> messages;
  for (int device = 0; device < program.device_count(); ++device) {
    const auto& ops = program.devices[device].ops;
    for (std::uint32_t i = 0; i < ops.size(); ++i) {
      if (!is_send(ops[i].kind)) continue;
      const Route route{device, ops[i].peer, channel_of(ops[i].kind)};
      const auto found = receives.find(route);
      const std::size_t position = taken[route]++;
      if (found == receives.end() || position >= found->second.size()) continue;
      messages.push_back({device, ops[i].peer, i, found->second[position]});
    }
  }
  return messages;
}

void check_timeline(const schedule::Program& program, const schedule::Timeline& timeline) {
  PENSTOCK_CHECK(timeline.devices.size() == program.devices.size(),
                 "a timeline has the devices of its program");
  for (std::size_t d = 0; d < program.devices.size(); ++d) {
    const auto& events = timeline.devices[d];
    PENSTOCK_CHECK(events.size() == program.devices[d].ops.size(), "a timeline has one event per op");
    for (std::size_t i = 0; i < events.size(); ++i) {
      PENSTOCK_CHECK(events[i].op == i, "a timeline is in the order of the ops");
    }
  }
}

}  // namespace penstock::report
