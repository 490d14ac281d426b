// SPDX-License-Identifier: Apache-2.0
// The text form of a schedule: PyTorch's compute-only pipeline CSV, extended by slices. One row per device, cells
// in execution order, an empty cell is idle: <stage><KIND><microbatch>[.<slice>], as in 3F2, 0B1.7, (0F1;3B0)OVERLAP_F_B,
// 2REDUCE_GRAD. Printing and parsing are inverse. Nothing read is trusted.
#pragma once

#include <string>
#include <string_view>

#include "schedule/schedule.h"

namespace penstock::schedule {

// "3F2", "0B1.7"; with_slice follows is_sliced(). Idle prints as "".
std::string to_token(const Action& action, bool with_slice);

// One cell without OVERLAP_F_B pairs. Throws InputError saying what was expected.
Action parse_token(std::string_view token);

std::string to_csv(const Schedule& schedule);

// Stages, micro-batches and slices are inferred as the greatest number + 1. `origin` names the text in errors
// (a file name): "my.csv: row 2, column 5: "3X1" is no action; expected ...". Throws InputError.
Schedule parse_csv(std::string_view text, std::string_view origin);

// {"schedule","stages","slices":[..],"devices":[["0F0",..],..]}
std::string to_json(const Schedule& schedule);

}  // namespace penstock::schedule
