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

#include "schedule/meeting.h"
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
    return Key{table, a.key.stage, a.key.micro_batch, a.key.slice};
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
    if (a.kind == schedule::Kind::BackwardWeight)
      return done[{1, a.key.stage, a.key.micro_batch, a.key.slice}];
    const int last_slice = schedule.slices[a.key.micro_batch] - 1;
    if (a.kind == schedule::Kind::Forward) {
      return (a.key.stage == 0 || done[{0, a.key.stage - 1, a.key.micro_batch, a.key.slice}]) &&
             (a.key.slice == 0 || done[{0, a.key.stage, a.key.micro_batch, a.key.slice - 1}]);
    }
    return done[{0, a.key.stage, a.key.micro_batch, a.key.slice}] &&
           (a.key.stage == stages - 1 || done[{1, a.key.stage + 1, a.key.micro_batch, a.key.slice}]) &&
           (a.key.slice == last_slice || done[{1, a.key.stage, a.key.micro_batch, a.key.slice + 1}]);
  };
  while (!waiting.empty()) {
    const std::size_t pick = below(static_cast<int>(waiting.size()));
    const schedule::Action a = waiting[pick];
    if (!ready(a)) continue;
    const int table = a.kind == schedule::Kind::Forward          ? 0
                      : a.kind == schedule::Kind::BackwardWeight ? 2
                                                                 : 1;
    done[{table, a.key.stage, a.key.micro_batch, a.key.slice}] = true;
    schedule.devices[home[a.key.stage]].push_back(a);
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(pick));
  }
  return schedule;
}

// Start and end of every op of a program that has only compute and collectives, as the longest paths of their
// dependencies. A device issues in order: an op waits until all ops before it are issued, compute before it
// is done, and collectives before it on its lane have begun to meet.
using Times = std::vector<std::vector<std::pair<double, double>>>;  // [device][op]

inline Times longest_path_of_meetings(const schedule::Program& program,
                                      const std::function<double(int, std::uint32_t)>& seconds,
                                      bool in_order) {
  const int p = program.device_count();
  Times times, came;  // came: issued, and met by all
  std::map<std::pair<schedule::Members, int>, std::vector<std::uint32_t>> rows;
  for (int d = 0; d < p; ++d) {
    const auto& ops = program.devices[d].ops;
    times.emplace_back(ops.size());
    came.emplace_back(ops.size());
    for (std::uint32_t i = 0; i < ops.size(); ++i) {
      if (is_collective(ops[i].kind)) rows[{schedule::meeting_of(d, ops[i]), d}].push_back(i);
    }
  }
  const auto members_of = [&](int d, std::uint32_t i) {
    std::vector<std::pair<int, std::uint32_t>> members;
    const schedule::Op& op = program.devices[d].ops[i];
    if (!is_collective(op.kind)) return std::vector{std::pair(d, i)};
    const schedule::Members who = schedule::meeting_of(d, op);
    const auto& own = rows[{who, d}];
    const auto nth = std::find(own.begin(), own.end(), i) - own.begin();
    for (int e = 0; e < p; ++e) {
      if (who.contain(e)) members.emplace_back(e, rows[{who, e}][nth]);
    }
    return members;
  };
  // When the op could begin if it had not to meet anybody.
  const auto comes = [&](int d, std::uint32_t i, bool after_lane) {
    const auto& ops = program.devices[d].ops;
    double time = 0;
    for (const std::uint32_t wait : program.devices[d].after_of(ops[i]))
      time = std::max(time, times[d][wait].second);
    for (std::uint32_t k = 0; k < i; ++k) {
      const bool same = lane_of(ops[k].kind) == lane_of(ops[i].kind);
      if (same && after_lane) time = std::max(time, times[d][k].second);
      if (!in_order) continue;
      const bool computes = lane_of(ops[k].kind) == schedule::Lane::Compute;
      time = std::max(time, computes ? times[d][k].second : same ? came[d][k].second : came[d][k].first);
    }
    return time;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (int d = 0; d < p; ++d) {
      for (std::uint32_t i = 0; i < program.devices[d].ops.size(); ++i) {
        double start = 0, took = 0, met = 0;
        for (const auto& [e, k] : members_of(d, i)) {
          start = std::max(start, comes(e, k, true));
          met = std::max(met, comes(e, k, false));
          took = std::max(took, seconds(e, k));
        }
        const std::pair now(start, start + took), issued(comes(d, i, false), met);
        changed |= times[d][i] != now || came[d][i] != issued;
        times[d][i] = now;
        came[d][i] = issued;
      }
    }
  }
  return times;
}

// Compute and collectives of all kinds on up to four devices, in an order that all agree on.
inline schedule::Program random_meetings(std::mt19937& random) {
  using schedule::OpKind;
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  const int p = 1 + below(4);
  schedule::Program program{"random", 1, {1}, std::vector<schedule::DeviceProgram>(p)};
  const auto append = [&](int d, const schedule::Op& op) {
    auto& list = program.devices[d];
    std::vector<std::uint32_t> waits;
    for (int k = below(3); k > 0 && !list.ops.empty(); --k)
      waits.push_back(static_cast<std::uint32_t>(below(static_cast<int>(list.ops.size()))));
    list.append(op, waits);
  };
  for (int left = 4 + below(16); left > 0; --left) {
    const int d = below(p), e = below(p);
    switch (below(5)) {
      case 0:
        if (d == e) break;
        append(d, {.kind = OpKind::ReduceGradients, .peer = e});
        append(e, {.kind = OpKind::ReduceGradients, .peer = d});
        break;
      case 1:
        for (int all = 0; all < p; ++all) append(all, {.kind = OpKind::VocabularyLoss});
        break;
      case 2:
        for (int all = 0; all < p; ++all)
          append(all, {.kind = OpKind::ReleaseWeights, .group = mesh::Group::World});
        break;
      case 3:
        append(d, {.kind = OpKind::GatherWeights, .group = mesh::Group::Replica});
        break;
      default:
        append(d, {.kind = OpKind::BackwardWeight});
    }
  }
  return program;
}

}  // namespace penstock::sim
