// SPDX-License-Identifier: Apache-2.0
// Steps that change nothing, since no token had a target or numbers were not finite; and what is said of
// them.
#pragma once

#include <cstdint>
#include <string>

#include "train/step/trainer.h"

namespace penstock::train {

inline constexpr int kMostSkippedInARow = 3;  // whose numbers were not finite, before a run gives up

// Whether a run may go on from the state after the step: neither checkpoints nor copies in memory are made
// while numbers are not finite, so that the last good ones stay the newest.
bool may_go_on_from(const StepReport& report);

std::string line_of_skipped(std::int64_t step, const StepReport& report);

// After so many in a row, the last one `step`. `checkpoint`: the newest one's directory; empty: none.
std::string line_of_giving_up(std::int64_t step, const std::string& checkpoint);

}  // namespace penstock::train
