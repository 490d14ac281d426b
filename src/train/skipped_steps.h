// SPDX-License-Identifier: Apache-2.0
// Steps that are skipped because no token had a target or numbers were not finite, and their messages.
#pragma once

#include <cstdint>
#include <string>

#include "train/step/trainer.h"

namespace penstock::train {

inline constexpr int kMostSkippedInARow = 3;  // steps with numbers not finite; then a run gives up

std::string line_of_skipped(std::int64_t step, const StepReport& report);

// Message after kMostSkippedInARow such steps in a row, the last one `step`. `checkpoint`: directory of the
// newest checkpoint; empty: none.
std::string line_of_giving_up(std::int64_t step, const std::string& checkpoint);

}  // namespace penstock::train
