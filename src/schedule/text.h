// SPDX-License-Identifier: Apache-2.0
// The text form of a schedule: PyTorch's compute-only pipeline CSV, extended by slices. One row per device,
// cells in execution order, an empty cell is idle: <stage><KIND><microbatch>[.<slice>], as in 3F2, 0B1.7,
// (0F1;3B0)OVERLAP_F_B, 2REDUCE_GRAD. Printing and parsing are inverse if every stage, micro-batch and slice
// of the schedule appears. As in Python's csv, an empty line is a row without cells, and a row of a single
// idle cell is written "". Input is not trusted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schedule/schedule.h"

namespace penstock::schedule {

// Upper bounds of what is read and generated. A single cell of a small file can name huge numbers, so the
// file's size is no bound.
inline constexpr int kMostDevices = 1 << 16;
inline constexpr int kMostStages = 1 << 20;
inline constexpr int kMostMicroBatches = 1 << 20;
inline constexpr int kMostSlices = 32767;  // a key's slice has 16 bits

// "3F2", "0B1.7"; pass is_sliced() as `with_slice`. Idle prints as "".
std::string to_token(const Action& action, bool with_slice);

// The action of the letter F, B, I or W; Idle for any other letter.
Kind kind_of(char letter);

// Parses one action, not an OVERLAP_F_B pair; "" is Idle. A token without a slice means slice 0. Throws
// InputError that says what was expected.
Action parse_token(std::string_view token);

// Appends the one or two actions of a cell.
void parse_cell(std::string_view cell, std::vector<Action>& row);

// The first action of an overlapped pair has overlaps_next; a chain of three fails a check.
std::string to_csv(const Schedule& schedule);

// Accepts CRLF, blanks around cells, cells in double quotes, and a missing last newline. Infers the numbers
// of stages, micro-batches and slices as the greatest number + 1. `origin` names the text in errors (a file
// name): "my.csv: row 2, column 5: "3X1" is not an action; expected ...". Throws InputError.
Schedule parse_csv(std::string_view text, std::string_view origin);

// Sets the numbers of stages, micro-batches and slices to the greatest number + 1 of each.
void infer_sizes(Schedule& schedule);

// One object, one line per device, no newline at the end, cells as in the CSV:
// {"schedule","stages","slices":[..],"devices":[["0F0",..],..]}
std::string to_json(const Schedule& schedule);

}  // namespace penstock::schedule
