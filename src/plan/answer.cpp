// SPDX-License-Identifier: Apache-2.0
#include "plan/answer.h"

#include <algorithm>

#include "base/error.h"
#include "plan/host_memory.h"
#include "plan/run_file.h"
#include "plan/simulated_step.h"
#include "plan/trainer.h"

namespace penstock::plan {
namespace {

// What is simulated are Penstock's own programs and records, of the models that it trains: an engine's file
// has times of another program, which the closed form alone knows.
bool is_simulated(const Question& question) {
  return question.cluster.engine == sim::kPenstock && question.workload.model.family == Family::Llama;
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
  if (is_simulated(question)) {
    if (const std::string why = why_no_run(question.workload, layout); !why.empty())
      throw InputError("[layout] is impossible: " + why);
  }
  return answer_for_layout(question, layout);
}

Plan answer_for_layout(const Question& question, const Layout& layout) {
  const auto offload = question.options.memory.offload;
  const bool any_offload = !offload.word.empty() && question.cluster.trainer == nullptr;
  Candidate candidate;
  candidate.layout = layout;
  candidate.layout.offload = offload.word.empty() ? offload.number : 0.0;
  candidate.memory = fit_memory(question.workload, candidate.layout, question.cluster.limit, !any_offload);
  candidate.layout.offload = candidate.memory.offload;
  candidate.cost =
      step_cost(question.workload, candidate.layout, question.cluster.hardware, question.cluster.engine);
  Plan plan{question.workload, question.cluster, {}};
  if (is_simulated(question) && action_count(question.workload, candidate.layout) <= kMostSimulatedActions) {
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

Plan answer(const Question& question, const std::string& origin) {
  Plan plan{question.workload, question.cluster, {}};
  constexpr std::size_t kTried = 48;  // by simulation, in each list
  const auto best = static_cast<std::size_t>(question.options.search.best);
  plan.result = search(question.workload, question.cluster,
                       question.cluster.trainer ? space_for(*question.cluster.trainer, question.options)
                                                : space_of(question.options),
                       std::max(best, kTried));
  if (!plan.result.best.empty() && is_simulated(question)) {
    simulate_best(question.workload, question.cluster, plan.result,
                  static_cast<std::size_t>(question.options.search.simulate),
                  !question.options.memory.offload.word.empty());
  } else if (!plan.result.without_exchange.empty()) {
    plan.result.best = plan.result.without_exchange;  // exchange is nearly free in closed form
  }
  plan.result.best.resize(std::min(best, plan.result.best.size()));
  if (plan.result.best.empty()) {
    throw NoAnswer((origin.empty() ? "" : origin + ": ") + print_nearest_miss(plan));
  }
  return plan;
}

}  // namespace penstock::plan
