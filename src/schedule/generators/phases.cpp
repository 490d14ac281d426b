// SPDX-License-Identifier: Apache-2.0
#include "schedule/generators/phases.h"

#include <algorithm>
#include <numeric>

namespace penstock::schedule {

namespace {

std::size_t count_units(const Request& request) {
  return std::accumulate(request.slices.begin(), request.slices.end(), std::size_t{0});
}

std::size_t count_units(const Groups& groups) {
  std::size_t count = 0;
  for (const auto& group : groups) count += group.size();
  return count;
}

template <class Stages>
Order order_of(Kind kind, const Groups& groups, const Stages& stages) {
  Order order;
  order.reserve(count_units(groups) * std::size(stages));
  for (const auto& group : groups) {
    for (const int stage : stages) {
      for (const Unit& unit : group) order.push_back({stage, unit.micro_batch, unit.slice, kind, false});
    }
  }
  return order;
}

}  // namespace

Schedule empty_schedule(const Request& request, int stages) {
  Schedule schedule;
  schedule.stages = stages;
  schedule.slices = request.slices;
  schedule.devices.resize(request.devices);
  return schedule;
}

Units forward_units(const Request& request) {
  Units units;
  units.reserve(count_units(request));
  for (int j = 0; j < request.micro_batches(); ++j) {
    for (int i = 0; i < request.slices[j]; ++i) units.push_back({j, static_cast<std::int16_t>(i)});
  }
  return units;
}

Units backward_units(const Request& request) {
  Units units;
  units.reserve(count_units(request));
  for (int j = 0; j < request.micro_batches(); ++j) {
    for (int i = request.slices[j] - 1; i >= 0; --i) units.push_back({j, static_cast<std::int16_t>(i)});
  }
  return units;
}

Groups one_group(const Units& units) { return {std::span(units)}; }

Groups groups_of(const Units& units, int size) {
  Groups groups;
  for (std::size_t begin = 0; begin < units.size(); begin += size) {
    groups.push_back(std::span(units).subspan(begin, std::min<std::size_t>(size, units.size() - begin)));
  }
  return groups;
}

Groups groups_of(const Units& units, std::span<const int> sizes) {
  Groups groups;
  std::size_t begin = 0;
  for (const int size : sizes) {
    groups.push_back(std::span(units).subspan(begin, size));
    begin += size;
  }
  return groups;
}

std::vector<int> looped_stages(int rank, int devices, int chunks) {
  std::vector<int> stages(chunks);
  for (int chunk = 0; chunk < chunks; ++chunk) stages[chunk] = chunk * devices + rank;
  return stages;
}

Order forward_order(const Groups& groups, std::span<const int> stages) {
  return order_of(Kind::Forward, groups, stages);
}

Order backward_order(const Groups& groups, std::span<const int> stages) {
  return order_of(Kind::Backward, groups, std::vector<int>(stages.rbegin(), stages.rend()));
}

Order one_forward_one_backward(const Order& forwards, const Order& backwards, std::span<const int> targets) {
  Order order;
  order.reserve(forwards.size() + backwards.size());
  int target = 0;
  for (std::size_t f = 0, b = 0; b < backwards.size();) {
    if (f < forwards.size()) target = std::max(target, targets[forwards[f].micro_batch]);
    const bool room = static_cast<int>(f - b) < target;
    order.push_back(f < forwards.size() && room ? forwards[f++] : backwards[b++]);
  }
  return order;
}

Order all_forwards_first(const Order& forwards, const Order& backwards) {
  Order order;
  order.reserve(forwards.size() + backwards.size());
  order.insert(order.end(), forwards.begin(), forwards.end());
  order.insert(order.end(), backwards.begin(), backwards.end());
  return order;
}

}  // namespace penstock::schedule
