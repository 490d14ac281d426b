// SPDX-License-Identifier: Apache-2.0
#include "plan/simulated_step.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <ranges>
#include <utility>
#include <vector>

#include "base/all_cores.h"
#include "base/error.h"
#include "plan/host_memory.h"
#include "plan/run_file.h"
#include "run/costs.h"
#include "run/lowering.h"
#include "run/memory.h"
#include "sim/costs/analytic.h"
#include "sim/simulate.h"

namespace penstock::plan {
namespace {

constexpr sim::ResultOptions kTimesOnly{.imbalance = false, .memory = false};

// Whether the candidate is there, with any group of slices.
bool contains(const std::vector<Candidate>& candidates, const Candidate& wanted) {
  return std::ranges::any_of(candidates, [&](const Candidate& candidate) {
    Layout layout = candidate.layout;
    layout.group = wanted.layout.group;
    return layout == wanted.layout;
  });
}

sim::AnalyticCosts costs_of(const Workload& workload, const Cluster& cluster, const run::Run& run) {
  return {run::work_of(run),
          cluster.hardware,
          cluster.engine,
          {.family = workload.model.family, .expert_load = workload.expert_load}};
}

// Lowers the run, predicts its memory and returns the bytes of its fullest device.
Bytes predict(run::Run& run) {
  run.program = run::program_of(run);
  run.predicted = run::predict_memory(run, run.program);
  return run.predicted[run::fullest_device(run.predicted)].total();
}

// Estimates the smallest sufficient offload share, in percent, from the bytes that one percent removes from
// the fullest device.
double estimated_share(const run::Run& run, int percent, double missing) {
  if (percent == 0) return 1;
  const double away = as_double(run.predicted[run::fullest_device(run.predicted)].host);
  if (away == 0) return missing > 0 ? 100 : 0;
  const double steps = std::ceil(missing * percent / away);
  return percent + (steps == 0 ? -1 : steps);
}

// Sets the smallest offload share, in whole percent, with which the run is predicted to fit, or 1 if none
// does. Starts from the run's share, that of the closed form. Returns whether the run fits.
bool fit_share(run::Run& run, Bytes limit) {
  int percent = static_cast<int>(std::lround(100 * run.offload)), too_little = -1, enough = 101;
  for (int estimates = 3;; --estimates) {
    run.offload = percent / 100.0;
    const double missing = as_double(predict(run) - limit);
    (missing <= 0 ? enough : too_little) = percent;
    if (enough - too_little == 1) break;
    percent = estimates > 0 ? static_cast<int>(std::clamp(estimated_share(run, percent, missing),
                                                          too_little + 1.0, enough - 1.0))
                            : (too_little + enough) / 2;
  }
  if (enough > 100) return false;
  if (percent != enough) {
    run.offload = enough / 100.0;
    predict(run);
  }
  return true;
}

struct Simulated {
  std::optional<Seconds> step;
  std::string refusal;  // by the trainer, if there is no step
};

// Simulates the layout's groups of slices, smallest first, until a larger one is no faster. Sets the fastest.
Simulated with_fastest_group(const Workload& workload, const Cluster& cluster, Layout& layout) {
  Simulated fastest;
  Layout other = layout;
  for (const int group : groups_to_try(layout.schedule, pipeline_shape(workload, layout))) {
    other.group = group;
    const LaidOut laid = lay_out(workload, cluster, other);
    if (!laid.run) return {{}, laid.refusal};
    const Seconds step =
        sim::simulate(run::program_of(*laid.run), costs_of(workload, cluster, *laid.run)).timeline.makespan();
    if (fastest.step && step >= *fastest.step) break;
    fastest.step = step;
    layout.group = group;
  }
  return fastest;
}

struct Ranked {
  std::vector<Candidate> fastest;  // by ascending step
  std::vector<Candidate> refused;  // by the trainer
  std::string refusal;             // for one of them
};

// Simulates with the offload shares of the closed form, and with the fastest groups. Skips long schedules,
// and those beyond kMostTriedActions in all.
Ranked by_simulation(const Workload& workload, const Cluster& cluster, std::vector<Candidate> candidates) {
  std::int64_t actions = 0;
  std::erase_if(candidates, [&](const Candidate& candidate) {
    const std::int64_t own = action_count(workload, candidate.layout);
    const bool leaves = own > kMostSimulatedActions || actions + own > kMostTriedActions;
    if (!leaves) actions += own;
    return leaves;
  });
  std::vector<Simulated> steps(candidates.size());
  on_all_cores(candidates.size(), [&](std::size_t i, std::size_t) {
    steps[i] = with_fastest_group(workload, cluster, candidates[i].layout);
  });
  Ranked ranked;
  std::vector<std::pair<Seconds, std::size_t>> order;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].step) {
      order.emplace_back(*steps[i].step, i);
    } else {
      ranked.refused.push_back(std::move(candidates[i]));
      ranked.refusal = steps[i].refusal;
    }
  }
  std::ranges::sort(order);
  for (const auto& [step, i] : order) ranked.fastest.push_back(std::move(candidates[i]));
  return ranked;
}

// The candidate as its run, with the largest group up to its own that fits; else with the smallest.
std::optional<Candidate> as_fitting_run(const Workload& workload, const Cluster& cluster, Candidate candidate,
                                        bool any_offload) {
  const std::vector<int> groups =
      groups_to_try(candidate.layout.schedule, pipeline_shape(workload, candidate.layout));
  std::optional<Candidate> run;
  for (auto group = std::ranges::find(groups, candidate.layout.group);; --group) {
    candidate.layout.group = *group;
    run = as_its_run(workload, cluster, candidate, any_offload);
    if (!run || run->memory.fits || group == groups.begin()) return run;
  }
}

struct Predicted {
  std::vector<Candidate> fitting;  // fastest first
  std::optional<Candidate> miss;   // nearest to fitting
  std::size_t tried = 0;           // how many of the ranked ones, from the first
};

// The runs of the `count` fastest; while none fits, of the next `count`.
Predicted predicted_runs(const Workload& workload, const Cluster& cluster,
                         const std::vector<Candidate>& ranked, std::size_t count, bool any_offload) {
  Predicted found;
  while (count > 0 && found.fitting.empty() && found.tried < ranked.size()) {
    std::vector<std::optional<Candidate>> runs(std::min(count, ranked.size() - found.tried));
    on_all_cores(runs.size(), [&](std::size_t i, std::size_t) {
      runs[i] = as_fitting_run(workload, cluster, ranked[found.tried + i], any_offload);
    });
    found.tried += runs.size();
    for (std::optional<Candidate>& candidate : runs) {
      if (!candidate) continue;
      if (candidate->memory.fits) {
        found.fitting.push_back(std::move(*candidate));
      } else {
        keep_nearer(workload, cluster, *candidate, found.miss);
      }
    }
  }
  std::ranges::stable_sort(found.fitting, is_faster);
  return found;
}

constexpr const char* kExchangeUnjudged =
    "all candidates that fit have context exchange, which only simulation judges, and schedules too long for "
    "that";

// Candidates that are not in `ranked` and that the trainer does not refuse. Sets ranked.refusal if it refuses
// one.
std::vector<Candidate> not_judged(const Workload& workload, const std::vector<Candidate>& candidates,
                                  Ranked& ranked) {
  std::vector<Candidate> others;
  for (const Candidate& candidate : candidates) {
    if (contains(ranked.fastest, candidate) || contains(ranked.refused, candidate)) continue;
    const std::string refusal = why_no_run(workload, candidate.layout);
    if (refusal.empty()) {
      others.push_back(candidate);
    } else {
      ranked.refusal = refusal;
    }
  }
  return others;
}

// Candidates with exchange (at most `count`, unless there are no others), then those without.
std::vector<Candidate> to_try(const SearchResult& result, std::size_t count) {
  const auto exchanges = [](const Candidate& candidate) {
    return candidate.layout.exchange != ExchangeMode::Off;
  };
  const std::size_t most = result.without_exchange.empty() ? result.best.size() : count;
  std::vector<Candidate> candidates;
  std::ranges::copy(result.best | std::views::filter(exchanges) | std::views::take(most),
                    std::back_inserter(candidates));
  std::ranges::copy(result.without_exchange, std::back_inserter(candidates));
  return candidates;
}

// The candidate's run, with whose predicted memory the candidate is filled.
std::optional<run::Run> run_with_memory(const Workload& workload, const Cluster& cluster,
                                        Candidate& candidate, bool any_offload) {
  std::optional<run::Run> run = lay_out(workload, cluster, candidate.layout).run;
  if (!run) return {};
  const auto limit = static_cast<Bytes>(cluster.limit);
  candidate.memory.fits = any_offload ? fit_share(*run, limit) : predict(*run) <= limit;
  candidate.layout.offload = candidate.memory.offload = run->offload;
  candidate.memory.rank = static_cast<int>(run::fullest_device(run->predicted));
  candidate.memory.fullest = run->predicted[candidate.memory.rank];
  candidate.memory.host = 0;
  for (const model::MemoryPeaks& memory : run->predicted)
    candidate.memory.host = std::max(candidate.memory.host, memory.host);
  candidate.predicted = run->predicted;
  candidate.memory.fits = candidate.memory.fits && host_holds(workload, cluster, candidate);
  return run;
}

}  // namespace

bool is_simulated(const Workload& workload, const Cluster& cluster) {
  return cluster.engine == sim::kPenstock && workload.model.family == Family::Llama;
}

std::int64_t action_count(const Workload& workload, const Layout& layout) {
  const std::int64_t kinds = splits_backward(layout.schedule) ? 3 : 2;
  return kinds * micro_batches(workload, layout) * layout.slices * layout.chunks * layout.mesh.pipeline;
}

std::optional<SimulatedStep> simulate_step(const Workload& workload, const Cluster& cluster,
                                           const Layout& layout) {
  const std::optional<run::Run> run = lay_out(workload, cluster, layout).run;
  if (!run) return {};
  SimulatedStep step{run::program_of(*run), {}};
  step.result = sim::evaluate(step.program, costs_of(workload, cluster, *run), kTimesOnly);
  return step;
}

std::optional<Candidate> as_its_run(const Workload& workload, const Cluster& cluster, Candidate candidate,
                                    bool any_offload) {
  const std::optional<run::Run> run = run_with_memory(workload, cluster, candidate, any_offload);
  if (!run) return {};
  candidate.cost = step_cost(workload, candidate.layout, cluster.hardware, cluster.engine);
  const sim::Result step = sim::evaluate(run->program, costs_of(workload, cluster, *run), kTimesOnly);
  candidate.simulated = step.makespan;
  candidate.simulated_bubble = step.bubble_fraction;
  return candidate;
}

bool fits_as_its_run(const Workload& workload, const Cluster& cluster, Candidate candidate) {
  return run_with_memory(workload, cluster, candidate, /*any_offload=*/false) && candidate.memory.fits;
}

void simulate_best(const Workload& workload, const Cluster& cluster, SearchResult& result, std::size_t count,
                   bool any_offload) {
  const std::size_t kept = result.best.size();
  Ranked ranked;
  if (count > 0) ranked = by_simulation(workload, cluster, to_try(result, count));
  Predicted found = predicted_runs(workload, cluster, ranked.fastest, count, any_offload);
  ranked.fastest.resize(found.tried);
  std::vector<Candidate> best = std::move(found.fitting);
  std::ranges::move(not_judged(workload, result.without_exchange, ranked), std::back_inserter(best));
  best.resize(std::min(kept, best.size()));
  if (best.empty() && !ranked.fastest.empty()) {
    result.nearest_miss = found.miss.value_or(ranked.fastest.front());
  } else if (best.empty()) {
    result.refusal = ranked.refusal.empty() ? kExchangeUnjudged : ranked.refusal;
  }
  result.best = std::move(best);
  std::erase_if(result.pareto,
                [&](const Candidate& candidate) { return !why_no_run(workload, candidate.layout).empty(); });
}

}  // namespace penstock::plan
