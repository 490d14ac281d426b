// SPDX-License-Identifier: Apache-2.0
#include "schedule/generators/greedy.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "schedule/generators/catalogue.h"
#include "schedule/patterns/list_scheduler.h"

namespace penstock::schedule {
namespace {

constexpr double kOverruns[] = {0, 0.25, 0.5, 1};

std::vector<Seconds> of_each_stage(const char* name, const std::vector<Seconds>& given, std::size_t stages) {
  if (given.empty()) return std::vector<Seconds>(stages, 1.0);
  if (given.size() != stages) {
    throw InputError("greedy: " + std::to_string(given.size()) + " " + name +
                     " times; expected one for each of " + std::to_string(stages) + " stages");
  }
  for (const Seconds time : given) {
    if (std::isfinite(time) && time >= 0) continue;
    throw InputError(std::string("greedy: a ") + name + " time of " + std::to_string(time) +
                     " s; expected finite seconds, zero or more");
  }
  return given;
}

// The most that a device must hold for one micro-batch to get through it.
Bytes least_limit(const ListProblem& problem) {
  std::vector<Bytes> sums(problem.devices);
  for (std::size_t stage = 0; stage < problem.home.size(); ++stage)
    sums[problem.home[stage]] += problem.record[stage];
  return *std::ranges::max_element(sums);
}

ListProblem problem_of(const Request& request, const GreedyOptions& options) {
  const int p = request.devices;
  const std::size_t stages = options.placing == Placing::V ? 2 * p : p;
  ListProblem problem{.devices = p, .micro_batches = request.micro_batches()};
  for (int stage = 0; stage < static_cast<int>(stages); ++stage) {
    problem.home.push_back(stage < p ? stage : 2 * p - 1 - stage);
  }
  problem.forward = of_each_stage("forward", options.forward, stages);
  problem.input = of_each_stage("input", options.input, stages);
  problem.weight = of_each_stage("weight", options.weight, stages);
  problem.transfer = of_each_stage("transfer", {options.transfer}, 1).front();
  problem.record = options.record.empty() ? std::vector<Bytes>(stages, 1) : options.record;
  if (problem.record.size() != stages ||
      std::ranges::any_of(problem.record, [](Bytes size) { return size < 0; })) {
    throw InputError("greedy: expected a record size of zero or more for each of " + std::to_string(stages) +
                     " stages");
  }
  const Bytes least = least_limit(problem);
  problem.limit = options.limit == 0 ? p * least : options.limit;
  if (problem.limit < least) {
    throw InputError("greedy: a limit of " + std::to_string(problem.limit) +
                     " lets no micro-batch through; expected at least " + std::to_string(least));
  }
  return problem;
}

// Every whole backward becomes an I and its W.
std::vector<Order> split(const Schedule& schedule) {
  std::vector<Order> rows;
  for (const Order& row : schedule.devices) {
    Order& split_row = rows.emplace_back();
    for (const Action& a : row) {
      if (a.kind != Kind::Backward) {
        split_row.push_back({a.key.stage, a.key.micro_batch, 0, a.kind, false});
        continue;
      }
      split_row.push_back(backward_input(a.key.stage, a.key.micro_batch));
      split_row.push_back(backward_weight(a.key.stage, a.key.micro_batch));
    }
  }
  return rows;
}

// Of equally long schedules the one whose devices begin later or end earlier: the next step may use the
// corners.
bool shorter(const ListResult& a, const ListResult& b) {
  constexpr double kRounding = 1e-12;
  if (std::abs(a.makespan - b.makespan) > kRounding * b.makespan) return a.makespan < b.makespan;
  return a.spans < b.spans;
}

class Search {
 public:
  explicit Search(const ListProblem& problem) : problem_(problem) {}

  void try_rule(const ListRule& rule) {
    std::optional<ListResult> result = list_schedule(problem_, rule);
    if (result && (!best_ || shorter(*result, *best_))) best_ = std::move(result);
  }

  void try_priorities() {
    for (const auto prefer :
         {ListRule::Prefer::Inputs, ListRule::Prefer::Forwards, ListRule::Prefer::Alternate}) {
      for (const bool later : {true, false}) {
        for (const double overrun : kOverruns) try_rule({prefer, later, overrun});
      }
    }
  }

  // A pattern that refuses this p and m is none to be compared with.
  void try_pattern(Schedule (*pattern)(const Request&), const Request& request) {
    std::vector<Order> rows;
    try {
      rows = split(pattern(request));
    } catch (const InputError&) {
      return;
    }
    try_rule({.guide = &rows, .weights_in_place = true});
    for (const double overrun : kOverruns) try_rule({.overrun = overrun, .guide = &rows});
  }

  ListResult take() {
    PENSTOCK_CHECK(best_.has_value(), "the priority rules always leave room for the oldest micro-batch");
    return std::move(*best_);
  }

 private:
  const ListProblem& problem_;
  std::optional<ListResult> best_;
};

}  // namespace

Schedule greedy(const Request& request, const GreedyOptions& options) {
  const ListProblem problem = problem_of(request, options);
  Search search(problem);
  search.try_priorities();
  if (options.placing == Placing::Even) {
    for (const auto pattern : {one_f_one_b, zb_h1, zb_h2}) search.try_pattern(pattern, request);
  } else {
    for (const auto pattern : {zb_v, v_half, v_min, dualpipe_v}) search.try_pattern(pattern, request);
  }
  Schedule schedule = empty_schedule(request, static_cast<int>(problem.home.size()));
  schedule.name = "greedy";
  schedule.devices = search.take().rows;
  return schedule;
}

Schedule greedy(const Request& request) { return greedy(request, {}); }

}  // namespace penstock::schedule
