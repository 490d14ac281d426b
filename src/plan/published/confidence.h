// SPDX-License-Identifier: Apache-2.0
// How far a plan's first step may be off, by the published runs that are most like it, for people and as
// JSON.
#pragma once

#include <optional>
#include <string>

#include "plan/plan_print.h"
#include "plan/published/checked.h"
#include "plan/question.h"

namespace penstock::plan {

struct Confidence {
  Seconds predicted = 0;             // of the plan's first candidate
  std::optional<Interval> interval;  // absent without published runs like it: none is on a CPU
  Words outside;                     // where nothing like the question is published
};

// Reads engines/checked.csv; without that file there is no interval.
Confidence confidence_in(const Question& question, const Plan& plan);

std::string print(const Confidence& confidence);  // empty without an interval

// What `penstock plan --json` prints: the plan, the speeds that were assumed, and the interval.
std::string print_answer_json(const Question& question, const Plan& plan);

}  // namespace penstock::plan
