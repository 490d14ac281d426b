// SPDX-License-Identifier: Apache-2.0
#include "schedule/patterns/list_scheduler.h"

#include <algorithm>
#include <limits>
#include <queue>

namespace penstock::schedule {
namespace {

constexpr Seconds kNever = std::numeric_limits<Seconds>::infinity();

struct Device {
  std::vector<int> stages;
  Seconds begin = 0;  // of its first action
  Seconds free = 0;
  Bytes held = 0;
  std::vector<Action> owed;  // W, from `paid` on
  std::size_t paid = 0;
  std::size_t guided = 0;  // actions of the guide that are done or passed over
  Kind latest = Kind::BackwardInput;
  Order row;

  bool owes() const { return paid < owed.size(); }
};

// An action that may come next on a device, and when its input is there.
struct Candidate {
  Action action;
  Seconds ready = kNever;

  bool exists() const { return ready < kNever; }
};

class ListScheduler {
 public:
  ListScheduler(const ListProblem& problem, const ListRule& rule)
      : problem_(problem), rule_(rule), devices_(problem.devices) {
    const std::size_t stages = problem.home.size();
    next_forward_.resize(stages);
    next_input_.resize(stages);
    for (auto* ready : {&forward_ready_, &input_ready_}) {
      ready->assign(stages, std::vector<Seconds>(problem.micro_batches, kNever));
    }
    forward_ready_.front().assign(problem.micro_batches, 0);
    for (std::size_t stage = 0; stage < stages; ++stage) {
      devices_[problem.home[stage]].stages.push_back(static_cast<int>(stage));
    }
    left_ = 3 * stages * problem.micro_batches;
  }

  std::optional<ListResult> run() {
    for (int device = 0; device < problem_.devices; ++device) wake(device, 0);
    while (!wakes_.empty()) {
      const auto [now, device] = wakes_.top();
      wakes_.pop();
      if (devices_[device].free <= now) decide(device, now);
    }
    if (left_ > 0) return std::nullopt;
    ListResult result;
    for (Device& device : devices_) {
      result.makespan = std::max(result.makespan, device.free);
      result.spans += device.free - device.begin;
      result.rows.push_back(std::move(device.row));
    }
    return result;
  }

 private:
  void wake(int device, Seconds when) { wakes_.push({when, device}); }

  void decide(int number, Seconds now) {
    Device& device = devices_[number];
    if (pays_in_place(device)) return start_weight(number, now);
    const std::vector<Candidate> candidates = rule_.guide ? guided(number) : free_choice(device);
    const Candidate* best = nullptr;
    Seconds next = kNever;
    bool short_of_room = false;
    for (const Candidate& candidate : candidates) {
      const bool room = candidate.action.kind != Kind::Forward || has_room(device, candidate.action);
      if (room) next = std::min(next, candidate.ready);
      if (candidate.ready > now) continue;
      short_of_room |= !room;
      if (room && (!best || better(device, candidate.action, best->action))) best = &candidate;
    }
    if (best) return start(number, best->action, now);
    if (device.owes() && !rule_.weights_in_place) {
      const Seconds time = problem_.weight[device.owed[device.paid].key.stage];
      if (short_of_room || next - now >= time * (1 - rule_.overrun)) return start_weight(number, now);
    }
    if (next < kNever) wake(number, next);
  }

  bool pays_in_place(const Device& device) const {
    if (!rule_.weights_in_place) return false;
    const Order& guide = (*rule_.guide)[&device - devices_.data()];
    return device.guided < guide.size() && guide[device.guided].kind == Kind::BackwardWeight;
  }

  std::vector<Candidate> guided(int number) {
    Device& device = devices_[number];
    const Order& guide = (*rule_.guide)[number];
    const auto is_weight = [&] { return guide[device.guided].kind == Kind::BackwardWeight; };
    while (device.guided < guide.size() && !rule_.weights_in_place && is_weight()) ++device.guided;
    if (device.guided == guide.size()) return {};
    const Action& action = guide[device.guided];
    const auto& ready = action.kind == Kind::Forward ? forward_ready_ : input_ready_;
    return {{action, ready[action.key.stage][action.key.micro_batch]}};
  }

  // The next F and the next I of each chunk, where their inputs are there or known to come.
  std::vector<Candidate> free_choice(const Device& device) const {
    std::vector<Candidate> candidates;
    for (const int stage : device.stages) {
      const int f = next_forward_[stage], i = next_input_[stage];
      if (f < problem_.micro_batches) candidates.push_back({forward(stage, f), forward_ready_[stage][f]});
      if (i < f) candidates.push_back({backward_input(stage, i), input_ready_[stage][i]});
    }
    std::erase_if(candidates, [](const Candidate& candidate) { return !candidate.exists(); });
    return candidates;
  }

  // Enough memory for this F, and after it still for the oldest micro-batch that has begun here and not all
  // of its chunks' F: so it can always be finished, and its memory then serves the next one.
  bool has_room(const Device& device, const Action& action) const {
    if (device.held + problem_.record[action.key.stage] > problem_.limit) return false;
    if (rule_.guide) return true;
    const auto forwards = [&](int stage) {
      return next_forward_[stage] + (stage == action.key.stage ? 1 : 0);
    };
    int oldest = problem_.micro_batches;
    for (const int stage : device.stages) oldest = std::min(oldest, forwards(stage));
    Bytes promised = 0;
    bool begun = false;
    for (const int stage : device.stages) {
      const int ahead = forwards(stage) - oldest;
      begun |= ahead > 0;
      promised += problem_.record[stage] * std::max(ahead, 1);
    }
    return !begun || promised <= problem_.limit;
  }

  bool better(const Device& device, const Action& a, const Action& b) const {
    if (a.kind != b.kind) return a.kind == preferred(device);
    if (a.key.micro_batch != b.key.micro_batch && a.kind == Kind::BackwardInput)
      return a.key.micro_batch < b.key.micro_batch;
    return rule_.later_chunks_first == (a.key.stage > b.key.stage);
  }

  Kind preferred(const Device& device) const {
    switch (rule_.prefer) {
      case ListRule::Prefer::Inputs:
        return Kind::BackwardInput;
      case ListRule::Prefer::Forwards:
        return Kind::Forward;
      default:
        return device.latest == Kind::Forward ? Kind::BackwardInput : Kind::Forward;
    }
  }

  void start(int number, const Action& action, Seconds now) {
    Device& device = devices_[number];
    const bool is_forward = action.kind == Kind::Forward;
    device.latest = action.kind;
    ++device.guided;
    occupy(number, action, now, (is_forward ? problem_.forward : problem_.input)[action.key.stage]);
    const Seconds end = device.free;
    if (is_forward) {
      device.held += problem_.record[action.key.stage];
      next_forward_[action.key.stage] = action.key.micro_batch + 1;
      const bool last = action.key.stage + 1 == static_cast<int>(problem_.home.size());
      hand_over(last ? input_ready_ : forward_ready_, action, last ? action.key.stage : action.key.stage + 1,
                end);
    } else {
      device.owed.push_back(backward_weight(action.key.stage, action.key.micro_batch));
      next_input_[action.key.stage] = action.key.micro_batch + 1;
      if (action.key.stage > 0) hand_over(input_ready_, action, action.key.stage - 1, end);
    }
  }

  void start_weight(int number, Seconds now) {
    Device& device = devices_[number];
    const Action action =
        rule_.weights_in_place ? (*rule_.guide)[number][device.guided++] : device.owed[device.paid];
    ++device.paid;
    device.held -= problem_.record[action.key.stage];
    occupy(number, action, now, problem_.weight[action.key.stage]);
  }

  void occupy(int number, const Action& action, Seconds from, Seconds seconds) {
    Device& device = devices_[number];
    if (device.row.empty()) device.begin = from;
    device.row.push_back(action);
    device.free = from + seconds;
    --left_;
    wake(number, device.free);
  }

  void hand_over(std::vector<std::vector<Seconds>>& ready, const Action& action, int stage, Seconds when) {
    const int to = problem_.home[stage];
    if (to != problem_.home[action.key.stage]) when += problem_.transfer;
    ready[stage][action.key.micro_batch] = when;
    wake(to, when);
  }

  using Wake = std::pair<Seconds, int>;

  const ListProblem& problem_;
  const ListRule& rule_;
  std::vector<Device> devices_;
  std::vector<std::vector<Seconds>> forward_ready_;  // [stage][micro-batch]
  std::vector<std::vector<Seconds>> input_ready_;
  std::vector<int> next_forward_;  // [stage]
  std::vector<int> next_input_;
  std::priority_queue<Wake, std::vector<Wake>, std::greater<>> wakes_;
  std::size_t left_ = 0;  // actions
};

}  // namespace

std::optional<ListResult> list_schedule(const ListProblem& problem, const ListRule& rule) {
  return ListScheduler(problem, rule).run();
}

}  // namespace penstock::schedule
