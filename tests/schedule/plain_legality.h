// SPDX-License-Identifier: Apache-2.0
// A deliberately dumb judgement of a schedule, written apart from check(): counts in maps, and devices that
// try their next cell until nothing moves.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "schedule/schedule.h"

namespace penstock::schedule {

inline bool plainly_complete(const Schedule& schedule) {
  std::map<Key, std::map<Kind, int>> runs;
  std::map<std::pair<int, int>, std::set<int>> homes;
  for (int device = 0; device < schedule.device_count(); ++device) {
    int computed = 0;
    for (const Action& a : schedule.devices[device]) {
      if (!is_compute(a.kind)) continue;
      ++computed;
      ++runs[a.key][a.kind];
      homes[{a.key.stage, a.key.micro_batch}].insert(device);
    }
    if (computed == 0) return false;
  }
  const std::map<Kind, int> whole{{Kind::Forward, 1}, {Kind::Backward, 1}};
  const std::map<Kind, int> split{{Kind::Forward, 1}, {Kind::BackwardInput, 1}, {Kind::BackwardWeight, 1}};
  for (int s = 0; s < schedule.stages; ++s) {
    for (int j = 0; j < schedule.micro_batches(); ++j) {
      for (int i = 0; i < schedule.slices[j]; ++i) {
        const auto& found = runs[make_key(s, j, i)];
        if (found != whole && found != split) return false;
      }
    }
  }
  return std::all_of(homes.begin(), homes.end(), [](const auto& home) { return home.second.size() == 1; });
}

class PlainRun {
 public:
  explicit PlainRun(const Schedule& schedule) : schedule_(schedule) {}

  bool finishes() {
    std::vector<std::size_t> next(schedule_.devices.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t device = 0; device < next.size(); ++device) {
        while (step(schedule_.devices[device], next[device])) moved = true;
      }
    }
    for (std::size_t device = 0; device < next.size(); ++device) {
      if (next[device] < schedule_.devices[device].size()) return false;
    }
    return true;
  }

 private:
  bool step(const std::vector<Action>& row, std::size_t& next) {
    if (next == row.size()) return false;
    const std::size_t end = next + (row[next].overlaps_next ? 2 : 1);
    for (std::size_t k = next; k < end; ++k) {
      if (!can_start(row[k])) return false;
    }
    for (; next < end; ++next) finish(row[next]);
    return true;
  }

  bool can_start(const Action& a) const {
    const auto [s, j, i] = a.key;
    if (a.kind == Kind::Forward) {
      return (s == 0 || forwards_.contains(a.key.at_stage(s - 1))) &&
             (i == 0 || forwards_.contains(make_key(s, j, i - 1)));
    }
    if (a.kind == Kind::BackwardWeight) return inputs_.contains(a.key);
    if (!is_compute(a.kind)) return true;
    return forwards_.contains(a.key) &&
           (s + 1 == schedule_.stages || gradients_.contains(a.key.at_stage(s + 1))) &&
           (i + 1 == schedule_.slices[j] || gradients_.contains(make_key(s, j, i + 1)));
  }

  void finish(const Action& a) {
    if (a.kind == Kind::Forward) forwards_.insert(a.key);
    if (is_backward(a.kind)) gradients_.insert(a.key);
    if (a.kind == Kind::BackwardInput) inputs_.insert(a.key);
  }

  const Schedule& schedule_;
  std::set<Key> forwards_, gradients_, inputs_;
};

// REDUCE_GRAD: none at all, or one for each stage on each of its devices, after its backwards.
inline bool plainly_reduces(const Schedule& schedule) {
  bool any = false, good = true;
  for (const auto& row : schedule.devices) {
    std::map<int, int> reduced;
    std::set<int> stages;
    for (const Action& a : row) {
      if (is_compute(a.kind)) {
        stages.insert(a.key.stage);
        if (a.kind != Kind::Forward && reduced[a.key.stage] > 0) good = false;
      }
      if (a.kind == Kind::ReduceGradients) any = true, ++reduced[a.key.stage];
    }
    for (const auto& [stage, times] : reduced) good &= times == 0 || stages.contains(stage);
    for (const int stage : stages) good &= reduced[stage] == 1;
  }
  return !any || good;
}

inline bool plainly_legal(const Schedule& schedule) {
  return plainly_complete(schedule) && plainly_reduces(schedule) && PlainRun(schedule).finishes();
}

}  // namespace penstock::schedule
