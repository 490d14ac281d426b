// SPDX-License-Identifier: Apache-2.0
#include "schedule/deliveries.h"

#include <cstddef>
#include <map>
#include <tuple>

namespace penstock::schedule {
namespace {

using Route = std::tuple<int, int, Channel>;  // source, destination, channel

std::map<Route, std::vector<std::uint32_t>> receives_by_route(const Program& program) {
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

std::vector<Delivery> deliveries_of(const Program& program) {
  const auto receives = receives_by_route(program);
  std::map<Route, std::size_t> taken;
  std::vector<Delivery> deliveries;
  for (int device = 0; device < program.device_count(); ++device) {
    const auto& ops = program.devices[device].ops;
    for (std::uint32_t i = 0; i < ops.size(); ++i) {
      if (!is_send(ops[i].kind)) continue;
      const Route route{device, ops[i].peer, channel_of(ops[i].kind)};
      const auto found = receives.find(route);
      const std::size_t position = taken[route]++;
      if (found == receives.end() || position >= found->second.size()) continue;
      deliveries.push_back({device, ops[i].peer, i, found->second[position]});
    }
  }
  return deliveries;
}

}  // namespace penstock::schedule
