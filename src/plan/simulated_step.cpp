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
#include "run/resolve/choose.h"
#include "run/resolve/resolve.h"
#include "sim/costs/analytic.h"
#include "sim/simulate.h"

namespace penstock::plan {
namespace {

bool contains(const std::vector<Candidate>& candidates, const Candidate& wanted) {
  return std::ranges::find(candidates, wanted.layout, &Candidate::layout) != candidates.end();
}

bool faster(const Candidate& a, const Candidate& b) { return a.step() < b.step(); }

// Or why there is none.
struct LaidOut {
  std::optional<run::Run> run;
  std::string refusal;
};

LaidOut run_of(const Workload& workload, const Cluster& cluster, const Layout& layout) {
  run::Machine machine;
  machine.hardware = cluster.hardware;
  try {
    run::Options options = options_of(workload, layout);
    if (workload.card) options.train.device = "cuda";
    run::Run run = run::lay_out(std::move(options), machine);
    run::choose_order(run);
    return {std::move(run), {}};
  } catch (const InputError& refusal) {
    return {{}, refusal.what()};
  }
}

sim::AnalyticCosts costs_of(const Workload& workload, const Cluster& cluster, const run::Run& run) {
  return {run::work_of(run),
          cluster.hardware,
          cluster.engine,
          {.family = workload.model.family, .expert_load = workload.expert_load}};
}

// Lowers the run and predicts its memory; the bytes of its fullest device.
Bytes predict(run::Run& run) {
  run.program = run::program_of(run);
  run.predicted = run::predict_memory(run, run.program);
  return run.predicted[run::fullest_device(run.predicted)].total();
}

// Sets the least share of offloading, in whole percent, with which the run is predicted to fit; begins with
// the run's, the closed form's. False where none does.
bool fit_share(run::Run& run, Bytes limit) {
  constexpr int kTries = 8;
  int percent = static_cast<int>(std::lround(100 * run.offload)), too_little = -1, enough = 101, last = -1;
  for (int i = 0; i < kTries && enough - too_little > 1 && percent <= 100; ++i) {
    run.offload = percent / 100.0;
    const Bytes bytes = predict(run);
    last = percent;
    (bytes <= limit ? enough : too_little) = percent;
    if (enough == 0) break;
    // What a percent takes away, where any leaves already.
    const Bytes away = run.predicted[run::fullest_device(run.predicted)].host;
    const double one = percent > 0 && away > 0 ? static_cast<double>(away) / percent : 0;
    const double missing = static_cast<double>(bytes - limit);
    const int steps = one > 0 ? static_cast<int>(std::ceil(missing / one)) : 1;
    percent = std::clamp(percent + (steps == 0 ? -1 : steps), too_little + 1, std::min(enough - 1, 100));
  }
  if (enough > 100) return false;
  run.offload = enough / 100.0;
  return last == enough || predict(run) <= limit;
}

struct Fastest {
  std::vector<Candidate> chosen;
  std::vector<Candidate> refused;  // by the trainer
  std::string refusal;             // of one of them
};

// The `count` fastest, simulated as the closed form has them; long ones and the last ones beyond
// kMostTriedActions are left out.
Fastest fastest(const Workload& workload, const Cluster& cluster, std::vector<Candidate> candidates,
                std::size_t count) {
  std::int64_t actions = 0;
  std::erase_if(candidates, [&](const Candidate& candidate) {
    const std::int64_t own = action_count(workload, candidate.layout);
    const bool leaves = own > kMostSimulatedActions || actions + own > kMostTriedActions;
    if (!leaves) actions += own;
    return leaves;
  });
  std::vector<std::optional<Seconds>> steps(candidates.size());
  std::vector<std::string> refusals(candidates.size());
  on_all_cores(candidates.size(), [&](std::size_t i, std::size_t) {
    const LaidOut laid = run_of(workload, cluster, candidates[i].layout);
    refusals[i] = laid.refusal;
    if (!laid.run) return;
    steps[i] =
        sim::simulate(run::program_of(*laid.run), costs_of(workload, cluster, *laid.run)).timeline.makespan();
  });
  Fastest found;
  std::vector<std::pair<Seconds, std::size_t>> order;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i]) {
      order.emplace_back(*steps[i], i);
    } else {
      found.refused.push_back(std::move(candidates[i]));
      found.refusal = refusals[i];
    }
  }
  std::ranges::sort(order);
  for (const auto& [step, i] : order | std::views::take(count))
    found.chosen.push_back(std::move(candidates[i]));
  return found;
}

// Those that are not judged by simulation, but have a run. Sets the refusal where one has none.
std::vector<Candidate> not_judged(const Workload& workload, const std::vector<Candidate>& candidates,
                                  Fastest& found) {
  std::vector<Candidate> others;
  for (const Candidate& candidate : candidates) {
    if (contains(found.chosen, candidate) || contains(found.refused, candidate)) continue;
    const std::string refusal = why_no_run(workload, candidate.layout);
    if (refusal.empty()) {
      others.push_back(candidate);
    } else {
      found.refusal = refusal;
    }
  }
  return others;
}

// Those with exchange, `count` at most, then those without.
std::vector<Candidate> to_try(const SearchResult& result, std::size_t count) {
  const auto exchanges = [](const Candidate& candidate) {
    return candidate.layout.exchange != ExchangeMode::Off;
  };
  std::vector<Candidate> candidates;
  std::ranges::copy(result.best | std::views::filter(exchanges) | std::views::take(count),
                    std::back_inserter(candidates));
  std::ranges::copy(result.without_exchange, std::back_inserter(candidates));
  return candidates;
}

}  // namespace

std::int64_t action_count(const Workload& workload, const Layout& layout) {
  const std::int64_t kinds = splits_backward(layout.schedule) ? 3 : 2;
  return kinds * micro_batches(workload, layout) * layout.slices * layout.chunks * layout.mesh.pipeline;
}

std::optional<SimulatedStep> simulate_step(const Workload& workload, const Cluster& cluster,
                                           const Layout& layout) {
  const std::optional<run::Run> run = run_of(workload, cluster, layout).run;
  if (!run) return {};
  SimulatedStep step{run::program_of(*run), {}};
  step.result =
      sim::evaluate(step.program, costs_of(workload, cluster, *run), {.imbalance = false, .memory = false});
  return step;
}

std::optional<Candidate> as_its_run(const Workload& workload, const Cluster& cluster, Candidate candidate,
                                    bool any_offload) {
  std::optional<run::Run> run = run_of(workload, cluster, candidate.layout).run;
  if (!run) return {};
  const auto limit = static_cast<Bytes>(cluster.limit);
  candidate.memory.fits = any_offload ? fit_share(*run, limit) : predict(*run) <= limit;
  if (any_offload && !candidate.memory.fits) {
    run->offload = 1;
    predict(*run);
  }
  candidate.layout.offload = candidate.memory.offload = run->offload;
  candidate.memory.rank = static_cast<int>(run::fullest_device(run->predicted));
  candidate.memory.fullest = run->predicted[candidate.memory.rank];
  candidate.memory.host = 0;
  for (const model::DeviceMemory& memory : run->predicted)
    candidate.memory.host = std::max(candidate.memory.host, memory.host);
  candidate.cost = step_cost(workload, candidate.layout, cluster.hardware, cluster.engine);
  candidate.simulated = sim::simulate(run->program, costs_of(workload, cluster, *run)).timeline.makespan();
  candidate.predicted = std::move(run->predicted);
  candidate.memory.fits = candidate.memory.fits && host_holds(workload, cluster, candidate);
  return candidate;
}

void simulate_best(const Workload& workload, const Cluster& cluster, SearchResult& result, std::size_t count,
                   bool any_offload) {
  const std::size_t kept = result.best.size();
  const bool only_exchange = result.without_exchange.empty();
  Fastest found = fastest(workload, cluster, to_try(result, count), count);
  std::vector<std::optional<Candidate>> tried(found.chosen.size());
  on_all_cores(tried.size(), [&](std::size_t i, std::size_t) {
    tried[i] = as_its_run(workload, cluster, found.chosen[i], any_offload);
  });
  std::vector<Candidate> simulated;
  std::optional<Candidate> miss;
  for (std::optional<Candidate>& candidate : tried) {
    if (!candidate) continue;
    if (candidate->memory.fits) {
      simulated.push_back(std::move(*candidate));
    } else {
      keep_nearer(workload, cluster, *candidate, miss);
    }
  }
  std::ranges::stable_sort(simulated, faster);
  std::ranges::move(not_judged(workload, only_exchange ? result.best : result.without_exchange, found),
                    std::back_inserter(simulated));
  simulated.resize(std::min(kept, simulated.size()));
  if (simulated.empty() && !found.chosen.empty()) {
    result.nearest_miss = miss.value_or(found.chosen.front());
  } else if (simulated.empty()) {
    result.refusal = found.refusal;
  }
  result.best = std::move(simulated);
  std::erase_if(result.pareto,
                [&](const Candidate& candidate) { return !why_no_run(workload, candidate.layout).empty(); });
}

}  // namespace penstock::plan
