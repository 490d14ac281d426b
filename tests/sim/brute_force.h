// SPDX-License-Identifier: Apache-2.0
// A deliberately dumb longest path over a schedule, written apart from src/sim: start times are raised until
// nothing changes. Knows transfers as a delay plus a link that carries one message after the other, in the
// sender's order.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "schedule/schedule.h"

namespace penstock::sim {

struct BruteForce {
  std::vector<std::vector<double>> end;  // [device][action]
  double makespan = 0;
};

// seconds(device, action); a message from one device to another holds the link for `occupied` and takes
// `latency` more.
inline BruteForce longest_path(const schedule::Schedule& schedule,
                               const std::function<double(int, const schedule::Action&)>& seconds,
                               const std::function<double(int, int)>& occupied, double latency) {
  using Key =
      std::tuple<int, int, int, int>;  // 0 forward, 1 backward or input, 2 weight; stage, micro-batch, slice
  std::map<Key, std::pair<int, int>> where;
  const auto key = [](const schedule::Action& a) {
    const int table = a.kind == schedule::Kind::Forward          ? 0
                      : a.kind == schedule::Kind::BackwardWeight ? 2
                                                                 : 1;
    return Key{table, a.stage, a.micro_batch, a.slice};
  };
  BruteForce result;
  for (int d = 0; d < schedule.device_count(); ++d) {
    result.end.emplace_back(schedule.devices[d].size(), 0.0);
    for (int i = 0; i < static_cast<int>(schedule.devices[d].size()); ++i)
      where[key(schedule.devices[d][i])] = {d, i};
  }
  std::map<Key, double> arrival;  // of the message that a result travels in
  for (bool changed = true; changed;) {
    changed = false;
    for (int d = 0; d < schedule.device_count(); ++d) {
      double now = 0;
      std::map<int, double> link_free;
      for (int i = 0; i < static_cast<int>(schedule.devices[d].size()); ++i) {
        const schedule::Action& a = schedule.devices[d][i];
        const auto [table, stage, micro_batch, slice] = key(a);
        const Key source{table, table == 0 ? stage - 1 : stage + 1, micro_batch, slice};
        if (table != 2 && where.count(source) && where[source].first != d)
          now = std::max(now, arrival[source]);
        now += seconds(d, a);
        changed |= result.end[d][i] != now;
        result.end[d][i] = now;
        result.makespan = std::max(result.makespan, now);
        const Key target{table, table == 0 ? stage + 1 : stage - 1, micro_batch, slice};
        if (table == 2 || !where.count(target) || where[target].first == d) continue;
        double& free = link_free[where[target].first];
        free = std::max(free, now) + occupied(d, where[target].first);
        arrival[key(a)] = free + latency;
      }
    }
  }
  return result;
}

// Stages on random devices, actions in a random legal order; every (stage, micro-batch) with B, or with I and
// W.
inline schedule::Schedule random_schedule(std::mt19937& random) {
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  const int p = 1 + below(4), stages = p + below(4), m = 1 + below(4);
  schedule::Schedule schedule{"random", stages, {}, std::vector<std::vector<schedule::Action>>(p)};
  for (int j = 0; j < m; ++j) schedule.slices.push_back(1 + below(3));
  std::vector<int> home(stages);
  for (int& device : home) device = below(p);
  std::vector<schedule::Action> waiting;
  std::map<std::tuple<int, int, int, int>, bool> done;
  for (int s = 0; s < stages; ++s) {
    for (int j = 0; j < m; ++j) {
      const bool split = below(2) == 0;
      for (int i = 0; i < schedule.slices[j]; ++i) {
        waiting.push_back(schedule::forward(s, j, i));
        waiting.push_back(split ? schedule::backward_input(s, j, i) : schedule::backward(s, j, i));
        if (split) waiting.push_back(schedule::backward_weight(s, j, i));
      }
    }
  }
  const auto ready = [&](const schedule::Action& a) {
    if (a.kind == schedule::Kind::BackwardWeight) return done[{1, a.stage, a.micro_batch, a.slice}];
    const int last_slice = schedule.slices[a.micro_batch] - 1;
    if (a.kind == schedule::Kind::Forward) {
      return (a.stage == 0 || done[{0, a.stage - 1, a.micro_batch, a.slice}]) &&
             (a.slice == 0 || done[{0, a.stage, a.micro_batch, a.slice - 1}]);
    }
    return done[{0, a.stage, a.micro_batch, a.slice}] &&
           (a.stage == stages - 1 || done[{1, a.stage + 1, a.micro_batch, a.slice}]) &&
           (a.slice == last_slice || done[{1, a.stage, a.micro_batch, a.slice + 1}]);
  };
  while (!waiting.empty()) {
    const std::size_t pick = below(static_cast<int>(waiting.size()));
    const schedule::Action a = waiting[pick];
    if (!ready(a)) continue;
    const int table = a.kind == schedule::Kind::Forward          ? 0
                      : a.kind == schedule::Kind::BackwardWeight ? 2
                                                                 : 1;
    done[{table, a.stage, a.micro_batch, a.slice}] = true;
    schedule.devices[home[a.stage]].push_back(a);
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(pick));
  }
  return schedule;
}

}  // namespace penstock::sim
