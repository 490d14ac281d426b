// SPDX-License-Identifier: Apache-2.0
// A deliberately dumb evaluation of a schedule with constant costs and free transfers, written apart from
// src/sim: every device walks its row, and an action waits until all that it depends on has ended.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "schedule/schedule.h"

namespace penstock::schedule {

struct UnitCosts {
  int forward = 1, backward = 2, input = 1, weight = 1;

  int of(Kind kind) const {
    if (kind == Kind::Forward) return forward;
    if (kind == Kind::Backward) return backward;
    return kind == Kind::BackwardInput ? input : weight;
  }
};

struct UnitTimes {
  bool finished = true;  // no action waits for ever
  int makespan = 0;
  std::vector<int> busy;           // per device
  std::vector<int> start, end;     // of each device's first and last action
  std::vector<int> peak;           // entries run forward whose B or W has not run
  std::vector<int> peak_to_input;  // entries run forward whose B or I has not run

  int step_idle() const { return makespan - *std::min_element(busy.begin(), busy.end()); }
  int span_idle() const {
    int most = 0;
    for (std::size_t d = 0; d < busy.size(); ++d) most = std::max(most, end[d] - start[d] - busy[d]);
    return most;
  }
};

class UnitTimeEvaluation {
 public:
  explicit UnitTimeEvaluation(const Schedule& schedule, UnitCosts costs = {})
      : schedule_(schedule), costs_(costs) {
    const std::size_t devices = schedule.devices.size();
    for (auto* row : {&times_.busy, &times_.start, &times_.end, &times_.peak, &times_.peak_to_input}) {
      row->assign(devices, 0);
    }
    most_slices_ = *std::max_element(schedule.slices.begin(), schedule.slices.end());
    for (auto& ends : end_of_) ends.assign(schedule.stages * schedule.slices.size() * most_slices_, kNever);
  }

  UnitTimes run() {
    std::vector<std::size_t> next(schedule_.devices.size(), 0);
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t d = 0; d < next.size(); ++d) {
        while (next[d] < schedule_.devices[d].size() && step(d, schedule_.devices[d][next[d]])) {
          ++next[d];
          progress = true;
        }
      }
    }
    for (std::size_t d = 0; d < next.size(); ++d) {
      if (next[d] < schedule_.devices[d].size()) times_.finished = false;
      times_.makespan = std::max(times_.makespan, times_.end[d]);
      count_in_flight(d);
    }
    return times_;
  }

 private:
  static constexpr int kNever = -1;

  int& end_of(Kind kind, int stage, int micro_batch, int slice) {
    const int table = kind == Kind::Forward ? 0 : kind == Kind::BackwardWeight ? 2 : 1;
    return end_of_[table][(stage * schedule_.slices.size() + micro_batch) * most_slices_ + slice];
  }

  // When everything the action needs has ended; kNever if something has not.
  int ready(const Action& a) {
    std::vector<int> needs{0};
    const int last_stage = schedule_.stages - 1, last_slice = schedule_.slices[a.key.micro_batch] - 1;
    if (a.kind == Kind::Forward) {
      if (a.key.stage > 0)
        needs.push_back(end_of(Kind::Forward, a.key.stage - 1, a.key.micro_batch, a.key.slice));
      if (a.key.slice > 0)
        needs.push_back(end_of(Kind::Forward, a.key.stage, a.key.micro_batch, a.key.slice - 1));
    } else if (a.kind == Kind::BackwardWeight) {
      needs.push_back(end_of(Kind::BackwardInput, a.key.stage, a.key.micro_batch, a.key.slice));
    } else {
      needs.push_back(end_of(Kind::Forward, a.key.stage, a.key.micro_batch, a.key.slice));
      if (a.key.stage < last_stage)
        needs.push_back(end_of(Kind::Backward, a.key.stage + 1, a.key.micro_batch, a.key.slice));
      if (a.key.slice < last_slice)
        needs.push_back(end_of(Kind::Backward, a.key.stage, a.key.micro_batch, a.key.slice + 1));
    }
    const auto [least, most] = std::minmax_element(needs.begin(), needs.end());
    return *least == kNever ? kNever : *most;
  }

  bool step(std::size_t d, const Action& a) {
    const int ready_at = ready(a);
    if (ready_at == kNever) return false;
    const int start = std::max(ready_at, times_.end[d]), cost = costs_.of(a.kind);
    if (times_.busy[d] == 0) times_.start[d] = start;
    times_.busy[d] += cost;
    times_.end[d] = end_of(a.kind, a.key.stage, a.key.micro_batch, a.key.slice) = start + cost;
    return true;
  }

  void count_in_flight(std::size_t d) {
    int entries = 0, to_input = 0;
    for (const Action& a : schedule_.devices[d]) {
      if (a.kind == Kind::Forward) ++entries, ++to_input;
      times_.peak[d] = std::max(times_.peak[d], entries);
      times_.peak_to_input[d] = std::max(times_.peak_to_input[d], to_input);
      if (is_backward(a.kind)) --to_input;
      if (a.kind == Kind::Backward || a.kind == Kind::BackwardWeight) --entries;
    }
  }

  const Schedule& schedule_;
  UnitCosts costs_;
  UnitTimes times_;
  int most_slices_ = 1;
  std::vector<int> end_of_[3];  // forward; backward or backward-input; backward-weight
};

inline UnitTimes unit_times(const Schedule& schedule, UnitCosts costs = {}) {
  return UnitTimeEvaluation(schedule, costs).run();
}

// Every (stage, micro-batch, slice) has one F and either one B or one I and one W, all on one device.
inline bool is_complete(const Schedule& schedule) {
  std::map<Key, std::map<Kind, int>> runs;
  std::map<std::pair<int, int>, int> home;
  for (int d = 0; d < schedule.device_count(); ++d) {
    for (const Action& a : schedule.devices[d]) {
      ++runs[a.key][a.kind];
      if (home.try_emplace({a.key.stage, a.key.micro_batch}, d).first->second != d) return false;
    }
  }
  const std::map<Kind, int> whole{{Kind::Forward, 1}, {Kind::Backward, 1}};
  const std::map<Kind, int> split{{Kind::Forward, 1}, {Kind::BackwardInput, 1}, {Kind::BackwardWeight, 1}};
  std::size_t expected = 0;
  for (const int n : schedule.slices) expected += schedule.stages * n;
  return runs.size() == expected && std::all_of(runs.begin(), runs.end(), [&](const auto& r) {
           return r.second == whole || r.second == split;
         });
}

// The actions that add to weight gradients (B or W) come in ascending micro-batches, slices last to first,
// stage by stage; so do the I.
inline bool has_fixed_gradient_order(const Schedule& schedule) {
  std::map<std::pair<int, bool>, std::pair<int, int>> latest;  // (stage, is I) -> (micro-batch, -slice)
  for (const auto& row : schedule.devices) {
    for (const Action& a : row) {
      if (a.kind == Kind::Forward) continue;
      const std::pair now{a.key.micro_batch, -a.key.slice};
      const auto [place, first] = latest.try_emplace({a.key.stage, a.kind == Kind::BackwardInput}, now);
      if (!first && place->second >= now) return false;
      place->second = now;
    }
  }
  return true;
}

// All of it, given the evaluation.
inline bool is_legal(const Schedule& schedule, const UnitTimes& times) {
  return times.finished && is_complete(schedule) && has_fixed_gradient_order(schedule);
}

}  // namespace penstock::schedule
