// SPDX-License-Identifier: Apache-2.0
#include "schedule/patterns/phases.h"

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

std::vector<int> in_flight_targets(const Request& request, int lead) {
  std::vector<int> targets = request.slices;
  for (int& target : targets) target += lead;
  return targets;
}

Order one_forward_one_backward(const Order& forwards, const Order& backwards, std::span<const int> targets,
                               int early) {
  Order order;
  order.reserve(forwards.size() + backwards.size());
  int target = 0;
  for (std::size_t f = 0, b = 0, opened = 0; b < backwards.size();) {
    for (; opened < std::min(f + early + 1, forwards.size()); ++opened) {
      target = std::max(target, targets[forwards[opened].key.micro_batch]);
    }
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

Order split_backwards(const Order& order, int delay) {
  Order split, weights;
  split.reserve(order.size() / 2 * 3);
  weights.reserve(order.size() / 2);
  std::size_t paid = 0;
  for (const Action& action : order) {
    split.push_back(action);
    if (action.kind != Kind::Backward) continue;
    split.back().kind = Kind::BackwardInput;
    weights.push_back(backward_weight(action.key.stage, action.key.micro_batch, action.key.slice));
    if (weights.size() - paid > static_cast<std::size_t>(delay)) split.push_back(weights[paid++]);
  }
  split.insert(split.end(), weights.begin() + paid, weights.end());
  return split;
}

}  // namespace penstock::schedule
