// SPDX-License-Identifier: Apache-2.0
#include "schedule/generators/greedy.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "schedule/generators/catalogue.h"
#include "schedule/patterns/list_scheduler.h"
#include "schedule/patterns/phases.h"

namespace penstock::schedule {
namespace {

struct Pattern {
  const char* name;
  Schedule (*generate)(const Request&);
};
constexpr Pattern kOneStage[] = {{"1f1b", one_f_one_b}, {"zb-h1", zb_h1}, {"zb-h2", zb_h2}};
constexpr Pattern kTwoStages[] = {
    {"zb-v", zb_v}, {"v-half", v_half}, {"v-min", v_min}, {"dualpipe-v", dualpipe_v}};

std::vector<Seconds> of_each_stage(const char* name, const std::vector<Seconds>& given, std::size_t stages) {
  if (given.empty()) return std::vector<Seconds>(stages, 1.0);
  if (given.size() != 1 && given.size() != stages) {
    throw InputError("greedy: " + std::to_string(given.size()) + " " + name +
                     " times; expected one, or one for each of " + std::to_string(stages) + " stages");
  }
  for (const Seconds time : given) {
    if (std::isfinite(time) && time >= 0) continue;
    throw InputError(std::string("greedy: a ") + name + " time of " + std::to_string(time) +
                     " s; expected finite seconds, zero or more");
  }
  return given.size() == stages ? given : std::vector<Seconds>(stages, given.front());
}

std::vector<Bytes> records_of(const StageCosts& costs, std::size_t stages) {
  if (costs.record.empty()) return std::vector<Bytes>(stages, 1);
  if (costs.record.size() == stages &&
      std::ranges::none_of(costs.record, [](Bytes size) { return size < 0; }))
    return costs.record;
  throw InputError("greedy: expected a record size of zero or more for each of " + std::to_string(stages) +
                   " stages");
}

// The limit that one micro-batch needs: the maximum over devices of the sum of their records.
Bytes least_limit(const ListProblem& problem) {
  std::vector<Bytes> sums(problem.devices);
  for (std::size_t stage = 0; stage < problem.home.size(); ++stage)
    sums[problem.home[stage]] += problem.record[stage];
  return *std::ranges::max_element(sums);
}

ListProblem problem_of(const Request& request) {
  const int p = request.devices;
  const StageCosts& costs = request.costs;
  const auto stages = static_cast<std::size_t>(p) * request.chunks;
  ListProblem problem{.devices = p, .micro_batches = request.micro_batches()};
  for (int stage = 0; stage < static_cast<int>(stages); ++stage) {
    problem.home.push_back(stage < p ? stage : 2 * p - 1 - stage);
  }
  problem.forward = of_each_stage("forward", costs.forward, stages);
  problem.input = of_each_stage("input", costs.input, stages);
  problem.weight = of_each_stage("weight", costs.weight, stages);
  problem.transfer = of_each_stage("transfer", {costs.transfer}, 1).front();
  problem.record = records_of(costs, stages);
  const Bytes least = least_limit(problem);
  problem.limit = costs.limit == 0 ? p * least : costs.limit;
  if (problem.limit < least) {
    const auto in_units = [&](Bytes limit) {
      return costs.record.empty() ? counted(limit, "stage record") : std::to_string(limit) + " bytes";
    };
    throw InputError("greedy: a memory limit of " + in_units(problem.limit) +
                     " lets no micro-batch through; expected at least " + in_units(least));
  }
  return problem;
}

// Splits every whole backward into an I and its W.
StepRows steps_of(const Schedule& schedule) {
  const auto p = static_cast<std::int32_t>(schedule.devices.size());
  StepRows rows;
  for (const Order& row : schedule.devices) {
    std::vector<Step>& steps = rows.emplace_back();
    steps.reserve(2 * row.size());
    for (const Action& a : row) {
      const std::uint8_t chunk = a.key.stage >= p;
      if (a.kind == Kind::Forward) steps.push_back({Step::Forward, chunk});
      if (is_backward(a.kind)) steps.push_back({Step::Input, chunk});
      if (a.kind == Kind::Backward || a.kind == Kind::BackwardWeight) steps.push_back({Step::Weight, chunk});
    }
  }
  return rows;
}

Order order_of_device(const std::vector<Step>& steps, int rank, int p) {
  constexpr Kind kKinds[] = {Kind::Forward, Kind::BackwardInput, Kind::BackwardWeight};
  int next[3][2]{};
  Order order;
  order.reserve(steps.size());
  for (const Step step : steps) {
    const int stage = step.chunk == 0 ? rank : 2 * p - 1 - rank;
    order.push_back({make_key(stage, next[step.kind][step.chunk]++), kKinds[step.kind], false});
  }
  return order;
}

class Search {
 public:
  explicit Search(const ListProblem& problem) : scheduler_(problem) {}

  // Skips a pattern that does not support this p and m.
  void try_pattern(const Pattern& pattern, const Request& request) {
    if (done()) return;
    StepRows rows;
    try {
      rows = steps_of(pattern.generate(request));
    } catch (const InputError&) {
      return;
    }
    take(scheduler_.replay(rows, best()), pattern.name, false);
    try_overruns({.guide = &rows}, pattern.name);
  }

  void try_priorities() {
    for (const auto prefer :
         {ListRule::Prefer::Inputs, ListRule::Prefer::Forwards, ListRule::Prefer::Alternate}) {
      for (const bool later : {true, false})
        try_overruns({.prefer = prefer, .later_chunks_first = later}, "");
    }
  }

  GreedySchedule schedule_of(const Request& request) {
    PENSTOCK_CHECK(best_.has_value(), "the priority rules always leave room for the oldest micro-batch");
    Schedule schedule = empty_schedule(request, request.devices * request.chunks);
    schedule.name = "greedy";
    for (int rank = 0; rank < request.devices; ++rank)
      schedule.devices[rank] = order_of_device(best_->rows[rank], rank, request.devices);
    return {std::move(schedule), pattern_, weights_anew_};
  }

 private:
  const ListResult* best() const { return best_ ? &*best_ : nullptr; }
  bool done() const { return best_ && scheduler_.is_best(*best_); }

  void take(std::optional<ListResult> better, const char* pattern, bool weights_anew) {
    if (!better) return;
    best_ = std::move(better);
    pattern_ = pattern;
    weights_anew_ = weights_anew;
  }

  void try_overruns(ListRule rule, const char* pattern) {
    unsigned tried = 0;
    for (rule.overrun = 0; rule.overrun < kOverrunCount; ++rule.overrun) {
      if (done() || (tried >> rule.overrun & 1)) continue;
      take(scheduler_.run(rule, best()), pattern, true);
      tried |= scheduler_.same_overruns();
    }
  }

  ListScheduler scheduler_;
  std::optional<ListResult> best_;
  std::string pattern_;
  bool weights_anew_ = false;
};

}  // namespace

std::string GreedySchedule::origin() const {
  if (pattern.empty()) return "own rules";
  return pattern + (weights_anew ? ", W anew" : "");
}

GreedySchedule make_greedy(const Request& asked) {
  Request request = asked;
  if (request.chunks == 0) request.chunks = 2;
  if (request.chunks > 2)
    throw InputError("greedy needs v = 1 or v = 2, got " + std::to_string(request.chunks));
  Search search(problem_of(request));
  const std::span<const Pattern> patterns =
      request.chunks == 1 ? std::span<const Pattern>(kOneStage) : std::span<const Pattern>(kTwoStages);
  for (const Pattern& pattern : patterns) search.try_pattern(pattern, request);
  search.try_priorities();
  return search.schedule_of(request);
}

Schedule greedy(const Request& request) { return make_greedy(request).schedule; }

}  // namespace penstock::schedule
