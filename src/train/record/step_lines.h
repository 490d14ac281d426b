// SPDX-License-Identifier: Apache-2.0
// The lines of metrics.jsonl as a later reader takes them: the file may have been changed since, or cut off
// by a full disk or a lost host.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>

namespace penstock::train {

inline constexpr const char* kNewestCheckpoint = "checkpoint";  // a member of a line; absent before the first

struct StepLines {
  std::map<std::int64_t, std::string_view> of_steps;  // views of the text; no line ends
  std::int64_t damaged = 0;                           // number of lines left out
  std::string remark;                                 // names the first of them; empty if there is none
};

// The lines of steps up to `last_step`, one of each step: the first. Leaves out damaged lines and second
// lines of a step. A last line without its end is taken if it is whole and left out without a remark if not:
// a run may be writing it. `path` begins the remark.
StepLines lines_of_steps(std::string_view text, const std::string& path,
                         std::int64_t last_step = std::numeric_limits<std::int64_t>::max());

// Returns the step of the newest checkpoint that the last whole lines of metrics.jsonl tell of; 0 if none
// does, as in files of earlier versions.
std::int64_t newest_checkpoint(std::string_view metrics);

}  // namespace penstock::train
