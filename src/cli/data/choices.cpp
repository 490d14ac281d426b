// SPDX-License-Identifier: Apache-2.0
#include "cli/data/choices.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/whole.h"
#include "run/costs.h"
#include "run/resolve/resolve.h"
#include "run/step_work.h"
#include "sim/result.h"

namespace penstock::cli {
namespace {

// One step: sums and maxima over the replicas; `seconds` and `idle` of the one with the most work.
struct StepSums {
  Flops work = 0, most = 0, greatest_micro_batch = 0, slowest_of_slots = 0, mean_of_slots = 0;
  double pairs = 0, causal_pairs = 0;
  Seconds seconds = 0, planning = 0;
  double idle = 0;
};

StepSums sums_of(const run::Run& run, const train::TokenData& data, std::int64_t first) {
  StepSums sums;
  run::StepContent slowest;
  for (run::StepContent& content : data.contents(first, run.mesh.data)) {
    const Seconds began = steady_seconds();
    const run::Run step = run::planned(run, content);
    sums.planning = std::max(sums.planning, steady_seconds() - began);
    const run::StepWork own = run::step_work(step, content.documents);
    sums.work += own.work;
    sums.greatest_micro_batch = std::max(sums.greatest_micro_batch, own.greatest_micro_batch);
    sums.slowest_of_slots += own.slowest_of_slots;
    sums.mean_of_slots += own.mean_of_slots;
    sums.pairs += own.pairs;
    sums.causal_pairs += own.causal_pairs;
    if (own.work <= sums.most) continue;
    sums.most = own.work;
    slowest = std::move(content);
  }
  const run::Run step = run::planned(run, std::move(slowest));
  const sim::Result result =
      sim::evaluate(step.program, run::costs_of(step, run.machine.hardware), sim::kTotals);
  sums.seconds = result.makespan;
  sums.idle = result.bubble_fraction;
  return sums;
}

}  // namespace

std::vector<DataChoice> choices_of(const run::Options& options, Tokens slice_tokens) {
  const Tokens given = options.schedule.slice_tokens;
  const std::int64_t slices = given > 0 ? ceil_div(options.data.seq_len, given) : 0;
  std::vector<DataChoice> choices;
  const bool packs = options.data.text.empty() && options.data.mask != "none";
  for (const char* packing : {"concat", "best_fit", "balanced"}) {
    const bool concat = std::string(packing) == "concat";
    if (!packs && !concat) continue;
    for (const char* cut : {"tokens", "work"}) {
      choices.push_back({packing, cut, 0, slices});
      if (slice_tokens > 0 && !concat) choices.push_back({packing, cut, slice_tokens});
    }
  }
  return choices;
}

run::Options with_choice(run::Options options, const DataChoice& choice) {
  options.data.packing = choice.packing;
  if (choice.packing != "balanced") options.data.window = 0;
  if (choice.packing == "concat") options.data.long_documents = "split";
  run::ScheduleOptions& schedule = options.schedule;
  schedule.cut = choice.cut;
  if (choice.slices > 0) schedule.slices = choice.slices;
  if (choice.slice_tokens > 0 && choice.slice_tokens != schedule.slice_tokens) schedule.slices = run::kUnset;
  schedule.slice_tokens = choice.slice_tokens;
  return options;
}

train::TokenData open_data(const run::Run& run, std::span<const Tokens> lengths) {
  const run::Options& options = run.options;
  return {options.data,
          options.train,
          run.shape().vocab,
          {.work = run::token_work(options),
           .replicas = options.numerics.replicas,
           .trims = options.schedule.slice_tokens > 0,
           .evaluates = false},
          lengths.empty() ? nullptr : train::tokens_of_lengths(lengths)};
}

run::StepContent content_of_step(const run::Run& run, std::int64_t step) {
  const train::TokenData data = open_data(run, {});
  std::vector<run::StepContent> replicas = data.contents((step - 1) * run.options.train.batch, run.mesh.data);
  return std::move(*std::ranges::max_element(replicas, {}, [&](const run::StepContent& content) {
    return run::step_work(run::planned(run, content), content.documents).work;
  }));
}

DataOutcome outcome_of(run::Options options, const DataChoice& choice, std::span<const Tokens> lengths,
                       std::int64_t steps, const run::Machine& machine) {
  const run::Run run = run::resolve(with_choice(std::move(options), choice), machine);
  const train::TokenData data = open_data(run, lengths);

  const std::int64_t batch = run.options.train.batch;
  const auto count = static_cast<double>(steps), replicas = static_cast<double>(run.mesh.data);
  DataOutcome outcome{.choice = choice, .attended = 0, .micro_batches = 0, .replicas = 0};
  StepSums all;
  Tokens tokens = 0, padding = 0;
  std::int64_t documents = 0, continued = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const train::BatchTokens held = data.count(step * batch);
    tokens += held.tokens;
    padding += held.padding;
    documents += held.documents;
    continued += held.continued;
    const StepSums sums = sums_of(run, data, step * batch);
    all.work += sums.work;
    all.pairs += sums.pairs;
    all.causal_pairs += sums.causal_pairs;
    all.slowest_of_slots += sums.slowest_of_slots;
    all.mean_of_slots += sums.mean_of_slots;
    outcome.micro_batches += sums.greatest_micro_batch * replicas *
                             static_cast<double>(run.schedule.micro_batches()) / sums.work / count;
    outcome.replicas += sums.most * replicas / sums.work / count;
    outcome.idle += sums.idle / count;
    outcome.planning_s = std::max(outcome.planning_s, sums.planning);
    outcome.step_s += sums.seconds / count;
  }
  outcome.padding = static_cast<double>(padding) / static_cast<double>(tokens + padding);
  outcome.cut_documents = static_cast<double>(continued) / static_cast<double>(documents);
  outcome.work_per_second =
      (all.work - run::token_work(run.options).of(static_cast<double>(padding), 0)) / count / outcome.step_s;
  outcome.attended = all.pairs / all.causal_pairs;
  if (all.mean_of_slots > 0) outcome.slots = all.slowest_of_slots / all.mean_of_slots;
  outcome.tokens_per_second = static_cast<double>(tokens) / count / outcome.step_s;
  return outcome;
}

}  // namespace penstock::cli
