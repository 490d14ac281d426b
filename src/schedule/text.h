// SPDX-License-Identifier: Apache-2.0
// The text form of a schedule: PyTorch's compute-only pipeline CSV, extended by slices. One row per device,
// cells in execution order, an empty cell is idle: <stage><KIND><microbatch>[.<slice>], as in 3F2, 0B1.7,
// (0F1;3B0)OVERLAP_F_B, 2REDUCE_GRAD. Printing and parsing are inverse for a schedule whose every number
// appears. As in Python's csv, an empty line is a row without cells, and a row of a single idle cell is
// written "". Nothing read is trusted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schedule/schedule.h"

namespace penstock::schedule {

// The greatest sizes that are read, and so generated: one cell names numbers that no file's size justifies
// otherwise.
inline constexpr int kMostDevices = 1 << 16;
inline constexpr int kMostStages = 1 << 20;
inline constexpr int kMostMicroBatches = 1 << 20;
inline constexpr int kMostSlices = 32767;  // a key's slice is a 16-bit number

// "3F2", "0B1.7"; with_slice follows is_sliced(). Idle prints as "".
std::string to_token(const Action& action, bool with_slice);

// The compute action of that letter, F, B, I or W; Idle for any other.
Kind kind_of(char letter);

// One cell without OVERLAP_F_B pairs; "" is Idle. A sliced file's token without slice means slice 0. Throws
// InputError saying what was expected.
Action parse_token(std::string_view token);

// Appends the one or two actions of a cell of a file.
void parse_cell(std::string_view cell, std::vector<Action>& row);

// The first of two actions has overlaps_next; three in a row are a broken invariant.
std::string to_csv(const Schedule& schedule);

// Accepts CRLF, blanks around cells, cells in double quotes, and a file with or without its last newline.
// Stages, micro-batches and slices are inferred as the greatest number + 1. `origin` names the text in errors
// (a file name): "my.csv: row 2, column 5: "3X1" is no action; expected ...". Throws InputError.
Schedule parse_csv(std::string_view text, std::string_view origin);

// Sets stages, micro-batches and slices to the greatest number + 1 of each.
void infer_sizes(Schedule& schedule);

// One object with a line for each device and no newline at its end, cells as in the CSV:
// {"schedule","stages","slices":[..],"devices":[["0F0",..],..]}
std::string to_json(const Schedule& schedule);

}  // namespace penstock::schedule
