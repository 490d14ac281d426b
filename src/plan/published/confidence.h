// SPDX-License-Identifier: Apache-2.0
// Likely error of the step of a plan's first candidate, from the most similar published runs, as text and
// JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "plan/plan_print.h"
#include "plan/published/checked.h"
#include "plan/question.h"

namespace penstock::plan {

struct Confidence {
  Seconds predicted = 0;             // step of the plan's first candidate
  std::optional<Interval> interval;  // absent without similar published runs; none is on a CPU
  Words outside;                     // ways in which the question is outside all published runs
};

// Reads engines/checked.csv; without that file, or if nothing fits, there is no interval.
Confidence confidence_in(const Question& question, const Plan& plan);

// `step` names whose step it is. Empty without an interval.
std::string print(const Confidence& confidence, std::string_view step);

// What `penstock plan --json` prints: the plan, the speeds that were assumed, and the interval.
std::string print_answer_json(const Question& question, const Plan& plan);

}  // namespace penstock::plan
