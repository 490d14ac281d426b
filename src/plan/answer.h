// SPDX-License-Identifier: Apache-2.0
// The answer to a question: the search, and the simulation of its best where the engine is Penstock's own.
#pragma once

#include <string>

#include "plan/plan_print.h"
#include "plan/question.h"

namespace penstock::plan {

inline constexpr std::int64_t kUsualBatch = 32;  // sequences of a step, where nothing says how many

// Throws NoAnswer that begins with `origin` and names the nearest miss when nothing fits.
Plan answer(const Question& question, const std::string& origin = {});

// The one configuration of [layout] as a plan of its own; it may not fit.
Plan answer_for_layout(const Question& question);
Plan answer_for_layout(const Question& question, const Layout& layout);

}  // namespace penstock::plan
