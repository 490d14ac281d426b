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

std::optional<run::Run> run_of(const Workload& workload, const Cluster& cluster, const Layout& layout) {
  run::Machine machine;
  machine.hardware = cluster.hardware;
  try {
    run::Options options = options_of(workload, layout);
    if (workload.card) options.train.device = "cuda";
    run::Run run = run::lay_out(std::move(options), machine);
    run::choose_order(run);
    return run;
  } catch (const InputError&) {
    return {};
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

// The `count` fastest, simulated as the closed form has them; those that no run file can express leave, and
// so do long ones and the last ones beyond kMostTriedActions.
std::vector<Candidate> fastest(const Workload& workload, const Cluster& cluster,
                               std::vector<Candidate> candidates, std::size_t count) {
  std::int64_t actions = 0;
  std::erase_if(candidates, [&](const Candidate& candidate) {
    const std::int64_t own = action_count(workload, candidate.layout);
    const bool leaves = own > kMostSimulatedActions || actions + own > kMostTriedActions;
    if (!leaves) actions += own;
    return leaves;
  });
  std::vector<std::optional<Seconds>> steps(candidates.size());
  on_all_cores(candidates.size(), [&](std::size_t i, std::size_t) {
    if (const auto run = run_of(workload, cluster, candidates[i].layout))
      steps[i] = sim::simulate(run::program_of(*run), costs_of(workload, cluster, *run)).timeline.makespan();
  });
  std::vector<std::pair<Seconds, std::size_t>> order;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i]) order.emplace_back(*steps[i], i);
  }
  std::ranges::sort(order);
  std::vector<Candidate> chosen;
  for (const auto& [step, i] : order | std::views::take(count)) chosen.push_back(std::move(candidates[i]));
  return chosen;
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
  const std::optional<run::Run> run = run_of(workload, cluster, layout);
  if (!run) return {};
  SimulatedStep step{run::program_of(*run), {}};
  step.result =
      sim::evaluate(step.program, costs_of(workload, cluster, *run), {.imbalance = false, .memory = false});
  return step;
}

std::optional<Candidate> as_its_run(const Workload& workload, const Cluster& cluster, Candidate candidate,
                                    bool any_offload) {
  std::optional<run::Run> run = run_of(workload, cluster, candidate.layout);
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
  candidate.memory.host_total = 0;
  for (const model::DeviceMemory& memory : run->predicted) candidate.memory.host_total += memory.host;
  candidate.memory.fits =
      candidate.memory.fits && host_holds(cluster, candidate.memory, candidate.layout.mesh.pipeline);
  candidate.cost = step_cost(workload, candidate.layout, cluster.hardware, cluster.engine);
  candidate.simulated = sim::simulate(run->program, costs_of(workload, cluster, *run)).timeline.makespan();
  candidate.predicted = std::move(run->predicted);
  return candidate;
}

void simulate_best(const Workload& workload, const Cluster& cluster, SearchResult& result, std::size_t count,
                   bool any_offload) {
  const std::size_t kept = result.best.size();
  const bool only_exchange = result.without_exchange.empty();
  const std::vector<Candidate> judged = fastest(workload, cluster, to_try(result, count), count);
  std::vector<std::optional<Candidate>> tried(judged.size());
  on_all_cores(judged.size(), [&](std::size_t i, std::size_t) {
    tried[i] = as_its_run(workload, cluster, judged[i], any_offload);
  });
  std::vector<Candidate> simulated;
  std::optional<Candidate> miss;
  for (std::optional<Candidate>& candidate : tried) {
    if (!candidate) continue;
    if (candidate->memory.fits) {
      simulated.push_back(std::move(*candidate));
    } else if (!miss || candidate->memory.fullest.total() < miss->memory.fullest.total()) {
      miss = std::move(candidate);
    }
  }
  std::ranges::stable_sort(simulated, faster);
  for (const Candidate& candidate : only_exchange ? result.best : result.without_exchange) {
    if (!contains(judged, candidate)) simulated.push_back(candidate);
  }
  simulated.resize(std::min(kept, simulated.size()));
  if (simulated.empty() && !judged.empty()) result.nearest_miss = miss.value_or(judged.front());
  result.best = std::move(simulated);
}

}  // namespace penstock::plan
