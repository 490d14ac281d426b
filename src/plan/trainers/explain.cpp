// SPDX-License-Identifier: Apache-2.0
#include "plan/trainers/explain.h"

#include "base/error.h"
#include "plan/answer.h"
#include "plan/published/confidence.h"
#include "plan/trainers/changes.h"
#include "plan/trainers/megatron.h"
#include "plan/trainers/torchtitan_question.h"

namespace penstock::plan {

Explained explain_configuration(const Today& today) {
  require(today.gpus >= 1, "gpus = " + std::to_string(today.gpus) + ": expected 1 or more");
  PlanOptions options;
  options.cluster.gpus = today.gpus;
  options.cluster.hardware = today.hardware;
  options.memory.limit = today.limit;
  options.memory.offload = {0, ""};
  options.cluster.engine = today.megatron.empty() ? "torchtitan" : "megatron";
  Beyond beyond;
  if (today.megatron.empty()) {
    beyond = read_torchtitan(today.torchtitan, today.origin, options);
  } else {
    beyond = read_megatron(today.megatron, options);
  }
  Question question = settled(options, "");
  apply(beyond, question);
  Layout layout = layout_of(question.options, question.workload, question.cluster);
  apply(beyond, question.workload, layout);
  adapt(question.cluster, layout);
  const Plan plan = answer_for_layout(question, layout);
  const Candidate& candidate = plan.result.best.front();
  if (const auto why = refusal_of(*question.cluster.trainer, question.workload, candidate.layout))
    throw InputError(*why);
  std::string text = explain_today(plan, question) + print(confidence_in(question, plan), "Step");
  if (!beyond.not_counted.empty()) text += "\nnot counted\n";
  for (const std::string& word : beyond.not_counted) text += "  " + word + "\n";
  return {text, candidate.memory.fits};
}

}  // namespace penstock::plan
