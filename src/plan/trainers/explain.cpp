// SPDX-License-Identifier: Apache-2.0
#include "plan/trainers/explain.h"

#include "base/error.h"
#include "plan/answer.h"
#include "plan/published/confidence.h"
#include "plan/trainers/changes.h"

namespace penstock::plan {

Explained explain_configuration(const Today& today) {
  const Job job(today);
  const Question& question = job.question();
  const Plan plan = answer_for_layout(question, job.layout());
  const Candidate& candidate = plan.result.best.front();
  if (const auto why = refusal_of(job.trainer(), question.workload, candidate.layout)) throw InputError(*why);
  std::string text = explain_today(plan, job) + print(confidence_in(question, plan), "Step");
  if (!job.not_counted().empty()) text += "\nnot counted\n";
  for (const std::string& word : job.not_counted()) text += "  " + word + "\n";
  return {text, candidate.memory.fits};
}

}  // namespace penstock::plan
