// SPDX-License-Identifier: Apache-2.0
// A list scheduler written for plainness: every decision looks at everything, times are seconds, nothing is
// skipped or given up. What ListScheduler must equal.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "schedule/patterns/list_problem.h"

namespace penstock::schedule {

class PlainListScheduler {
 public:
  PlainListScheduler(const ListProblem& problem, const ListRule& rule)
      : problem_(problem), rule_(rule), devices_(problem.devices), stages_(problem.home.size()) {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].forward_ready.resize(problem.micro_batches, s == 0 ? 0 : kNever);
      stages_[s].input_ready.resize(problem.micro_batches, kNever);
      devices_[problem.home[s]].stages.push_back(static_cast<int>(s));
    }
  }

  // Nothing when it gets stuck.
  std::optional<StepRows> run() {
    for (int d = 0; d < problem_.devices; ++d) wakes_.insert({0, d});
    while (!wakes_.empty()) {
      const auto [now, d] = *wakes_.begin();
      wakes_.erase(wakes_.begin());
      if (devices_[d].free <= now) decide(devices_[d], d, now);
    }
    StepRows rows;
    std::size_t done = 0;
    for (Device& device : devices_) done += rows.emplace_back(std::move(device.row)).size();
    return done == 3 * stages_.size() * problem_.micro_batches ? std::optional(rows) : std::nullopt;
  }

 private:
  static constexpr Seconds kNever = std::numeric_limits<Seconds>::infinity();
  struct Stage {
    std::vector<Seconds> forward_ready, input_ready;
    int forwards = 0, inputs = 0;
  };
  struct Device {
    std::vector<int> stages;
    Seconds free = 0;
    Bytes held = 0;
    std::vector<std::uint8_t> owed;
    std::size_t paid = 0, guided = 0;
    bool forward_latest = false;
    std::vector<Step> row;
  };
  struct Candidate {
    Step step;
    Seconds ready;
    int micro_batch;
  };

  std::vector<Candidate> candidates(Device& device, int d) {
    std::vector<Candidate> found;
    if (rule_.guide) {
      const auto& guide = (*rule_.guide)[d];
      while (device.guided < guide.size() && guide[device.guided].kind == Step::Weight) ++device.guided;
    }
    for (std::uint8_t c = 0; c < device.stages.size(); ++c) {
      const Stage& stage = stages_[device.stages[c]];
      if (stage.forwards < problem_.micro_batches)
        found.push_back({{Step::Forward, c}, stage.forward_ready[stage.forwards], stage.forwards});
      if (stage.inputs < problem_.micro_batches)
        found.push_back({{Step::Input, c}, stage.input_ready[stage.inputs], stage.inputs});
    }
    std::erase_if(found, [&](const Candidate& each) {
      if (each.ready == kNever) return true;
      if (!rule_.guide) return false;
      const auto& guide = (*rule_.guide)[d];
      return device.guided == guide.size() || each.step != guide[device.guided];
    });
    return found;
  }

  bool has_room(const Device& device, Step step) const {
    if (device.held + problem_.record[device.stages[step.chunk]] > problem_.limit) return false;
    if (rule_.guide) return true;
    std::vector<int> forwards;
    for (const int stage : device.stages) forwards.push_back(stages_[stage].forwards);
    ++forwards[step.chunk];
    const auto [least, most] = std::ranges::minmax(forwards);
    Bytes promised = 0;
    for (std::size_t c = 0; c < forwards.size(); ++c)
      promised += problem_.record[device.stages[c]] * std::max(forwards[c] - least, 1);
    return least == most || promised <= problem_.limit;
  }

  bool better(const Device& device, const Candidate& a, const Candidate& b) const {
    if (a.step.kind != b.step.kind) {
      const bool input = rule_.prefer == ListRule::Prefer::Inputs ||
                         (rule_.prefer == ListRule::Prefer::Alternate && device.forward_latest);
      return (a.step.kind == Step::Input) == input;
    }
    if (a.step.kind == Step::Input && a.micro_batch != b.micro_batch) return a.micro_batch < b.micro_batch;
    return rule_.later_chunks_first == (a.step.chunk > b.step.chunk);
  }

  void decide(Device& device, int d, Seconds now) {
    const Candidate* best = nullptr;
    Seconds next = kNever;
    bool short_of_room = false;
    const std::vector<Candidate> all = candidates(device, d);
    for (const Candidate& each : all) {
      const bool room = each.step.kind == Step::Input || has_room(device, each.step);
      if (room) next = std::min(next, each.ready);
      if (each.ready > now) continue;
      short_of_room |= !room;
      if (room && (!best || better(device, each, *best))) best = &each;
    }
    if (best) return start(device, d, best->step, now);
    if (device.paid == device.owed.size()) return;
    const std::uint8_t chunk = device.owed[device.paid];
    const Seconds time = problem_.weight[device.stages[chunk]];
    if (!short_of_room && next - now < time * (1 - kOverruns[rule_.overrun])) return;
    ++device.paid;
    start(device, d, {Step::Weight, chunk}, now);
  }

  void start(Device& device, int d, Step step, Seconds now) {
    const int s = device.stages[step.chunk];
    Stage& stage = stages_[s];
    device.row.push_back(step);
    const std::vector<Seconds>* const times[] = {&problem_.forward, &problem_.input, &problem_.weight};
    device.free = now + (*times[step.kind])[s];
    wakes_.insert({device.free, d});
    if (step.kind == Step::Weight) {
      device.held -= problem_.record[s];
      return;
    }
    ++device.guided;
    device.forward_latest = step.kind == Step::Forward;
    const auto last = static_cast<int>(stages_.size()) - 1;
    if (step.kind == Step::Forward) {
      device.held += problem_.record[s];
      const int j = stage.forwards++;
      s == last ? arrive(stage.input_ready[j], d, d, device.free)
                : arrive(stages_[s + 1].forward_ready[j], d, problem_.home[s + 1], device.free);
    } else {
      device.owed.push_back(step.chunk);
      const int j = stage.inputs++;
      if (s > 0) arrive(stages_[s - 1].input_ready[j], d, problem_.home[s - 1], device.free);
    }
  }

  void arrive(Seconds& ready, int from, int to, Seconds when) {
    ready = when + (from == to ? 0 : problem_.transfer);
    wakes_.insert({ready, to});
  }

  const ListProblem& problem_;
  const ListRule& rule_;
  std::vector<Device> devices_;
  std::vector<Stage> stages_;
  std::set<std::pair<Seconds, int>> wakes_;
};

}  // namespace penstock::schedule
