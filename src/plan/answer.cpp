// SPDX-License-Identifier: Apache-2.0
#include "plan/answer.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "plan/host_memory.h"
#include "plan/run_file.h"
#include "plan/simulated_step.h"
#include "plan/trainer.h"

namespace penstock::plan {
namespace {

// The closed form of exchange is rough, so a search without simulation excludes it.
SearchSpace space_of_search(const Question& question) {
  if (question.cluster.trainer) return space_for(*question.cluster.trainer, question.options);
  SearchSpace space = space_of(question.options);
  if (is_simulated(question.workload, question.cluster) && question.options.search.simulate > 0) return space;
  if (std::ranges::find(space.exchanges, ExchangeMode::Off) == space.exchanges.end())
    throw InputError("search.exchanges = " + json_quote_all(question.options.search.exchanges) +
                     ": exchange is judged by simulation, and this plan stays with the closed form; "
                     "expected \"off\" among them");
  space.exchanges = {ExchangeMode::Off};
  return space;
}

}  // namespace

Plan answer_for_layout(const Question& question) {
  if (question.cluster.trainer) require_within(*question.cluster.trainer, question.options);
  Layout layout = layout_of(question.options, question.workload, question.cluster);
  adapt(question.cluster, layout);
  if (question.cluster.trainer) {
    if (const auto why = refusal_of(*question.cluster.trainer, question.workload, layout))
      throw InputError("[layout] is impossible: " + *why);
  }
  if (is_simulated(question.workload, question.cluster)) {
    if (const std::string why = why_no_run(question.workload, layout); !why.empty())
      throw InputError("[layout] is impossible: " + why);
  }
  return answer_for_layout(question, layout);
}

Plan answer_for_layout(const Question& question, const Layout& layout) {
  const auto offload = question.options.memory.offload;
  const bool any_offload = offload.is_auto() && question.cluster.trainer == nullptr;
  Candidate candidate;
  candidate.layout = layout;
  candidate.layout.offload = offload.is_auto() ? 0.0 : offload.number;
  candidate.memory = any_offload
                         ? fit_with_least_offload(question.workload, candidate.layout, question.cluster.limit)
                         : fit_memory(question.workload, candidate.layout, question.cluster.limit);
  candidate.layout.offload = candidate.memory.offload;
  candidate.cost =
      step_cost(question.workload, candidate.layout, question.cluster.hardware, question.cluster.engine);
  Plan plan{question.workload, question.cluster, {}};
  if (is_simulated(question.workload, question.cluster) &&
      action_count(question.workload, candidate.layout) <= kMostSimulatedActions) {
    if (auto run = as_its_run(question.workload, question.cluster, candidate, any_offload))
      candidate = std::move(*run);
  }
  candidate.memory.fits = candidate.memory.fits && host_holds(question.workload, question.cluster, candidate);
  plan.result.candidates = 1;
  plan.result.best = {candidate};
  if (!candidate.memory.fits) {
    const bool device = as_double(candidate.memory.fullest.total()) > question.cluster.limit;
    const Rejection why = device ? Rejection::DeviceMemory : Rejection::HostMemory;
    plan.result.rejected[static_cast<std::size_t>(why)] = 1;
  }
  return plan;
}

Plan answer(const Question& question) {
  Plan plan{question.workload, question.cluster, {}};
  constexpr std::size_t kTried = 48;  // candidates of each list that may be simulated
  const auto best = static_cast<std::size_t>(question.options.search.best);
  plan.result =
      search(question.workload, question.cluster, space_of_search(question), std::max(best, kTried));
  if (!plan.result.best.empty() && is_simulated(question.workload, question.cluster)) {
    simulate_best(question.workload, question.cluster, plan.result,
                  static_cast<std::size_t>(question.options.search.simulate),
                  question.options.memory.offload.is_auto());
  }
  plan.result.best.resize(std::min(best, plan.result.best.size()));
  return plan;
}

void require_answer(const Plan& plan, const std::string& origin) {
  if (!plan.result.best.empty()) return;
  throw NoAnswer((origin.empty() ? "" : origin + ": ") + print_nearest_miss(plan));
}

}  // namespace penstock::plan
