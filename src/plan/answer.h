// SPDX-License-Identifier: Apache-2.0
// Answers a question: runs the search and, for Penstock's own engine, simulates the best candidates.
#pragma once

#include <string>

#include "plan/plan_print.h"
#include "plan/question.h"

namespace penstock::plan {

inline constexpr std::int64_t kUsualBatch = 32;  // default number of sequences per step

// Without a best candidate if nothing fits.
Plan answer(const Question& question);

// Throws NoAnswer if nothing fits; the message begins with `origin` and names the nearest miss.
void require_answer(const Plan& plan, const std::string& origin = {});

// A plan with one configuration only: that of [layout], or `layout`. It may not fit.
Plan answer_for_layout(const Question& question);
Plan answer_for_layout(const Question& question, const Layout& layout);

}  // namespace penstock::plan
