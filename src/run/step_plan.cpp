// SPDX-License-Identifier: Apache-2.0
#include "run/step_plan.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/whole.h"
#include "run/arrange.h"
#include "run/lowering.h"
#include "schedule/generators/generator.h"

namespace penstock::run {
namespace {

// Slices of each micro-batch: as many as the longest sequence takes, if the shortest has tokens for them.
std::vector<int> slices_of_step(const ScheduleOptions& chosen, const StepContent& content) {
  std::vector<int> numbers;
  for (std::size_t j = 0; j < content.most.size(); ++j)
    numbers.push_back(
        static_cast<int>(std::min(ceil_div(content.most[j], chosen.slice_tokens), content.fewest[j])));
  return numbers;
}

// The given unit, or a smaller one for a sequence that is cut into more slices than it has units.
Tokens unit_for(Tokens tokens, int slices, Tokens given) {
  return ceil_div(tokens, given) < slices ? tokens / slices : given;
}

}  // namespace

void settle_slice_tokens(Options& options) {
  ScheduleOptions& chosen = options.schedule;
  if (chosen.slice_tokens == 0) return;
  const std::string given = "schedule.slice_tokens = " + std::to_string(chosen.slice_tokens);
  require(
      options.data.packing != "concat",
      given +
          " applies to sequences as long as their documents; data.packing = \"concat\" fills them all: use "
          "\"best_fit\" or \"balanced\", or schedule.slices");
  const Tokens most = ceil_div(options.data.seq_len, chosen.slice_tokens);
  require(chosen.slices <= 0 || chosen.slices == most,
          given + " and schedule.slices = " + std::to_string(chosen.slices) + " are both given; keep one");
  require(chosen.file.empty(), given + " needs a schedule for each step; give schedule.name, not a file");
  require(options.train.micro_batch == 1, given +
                                              " makes micro-batches of one sequence; train.micro_batch = " +
                                              std::to_string(options.train.micro_batch) + ": use 1");
  require(options.parallel.cp == 1,
          given + " cuts where documents end, and parallel.cp = " + std::to_string(options.parallel.cp) +
              " ranks cannot split every such slice: use parallel.cp = 1");
  require(options.moe.balance_coefficient == 0 && options.moe.z_coefficient == 0,
          given +
              ": the losses of routers are means over micro-batches of one length: use "
              "moe.balance_coefficient = 0 and moe.z_coefficient = 0");
  require(chosen.slice_tokens >= chosen.slice_unit,
          given + " is less than schedule.slice_unit = " + std::to_string(chosen.slice_unit));
  chosen.slices = most;
}

bool is_planned_by_step(const Run& run) {
  const ScheduleOptions& chosen = run.options.schedule;
  return run.options.data.mask == "documents" &&
         (chosen.cut == "work" || chosen.slice_tokens > 0 || run.exchange != schedule::ExchangeMode::Off);
}

Run planned(const Run& run, StepContent content) {
  const ScheduleOptions& chosen = run.options.schedule;
  PENSTOCK_CHECK(content.documents.size() == run.slices.size(), "a plan has the step's micro-batches");
  Run step = run;
  step.documents = std::move(content.documents);
  if (!is_planned_by_step(run)) return step;
  if (chosen.slice_tokens > 0) {
    schedule::Request request = request_of(run.options, std::ssize(step.documents));
    request.slices = slices_of_step(chosen, content);
    step.schedule = schedule::generate(chosen.name, request);
  }
  const model::TokenWork work = token_work(run.options);
  for (std::size_t j = 0; j < step.documents.size(); ++j) {
    const int n = step.schedule.slices[j];
    const model::Documents& documents = step.documents[j];
    const Tokens tokens = model::sequence_length(documents);
    const Tokens unit = unit_for(tokens, n, chosen.slice_unit);
    step.slices[j] = chosen.cut == "work" ? model::cut_by_work(documents, n, unit, work)
                                          : model::cut_into_slices(tokens, n, unit);
  }
  step.program = program_of(step);
  return step;
}

}  // namespace penstock::run
