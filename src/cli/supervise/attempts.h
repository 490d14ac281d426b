// SPDX-License-Identifier: Apache-2.0
// The attempts of a supervised run: whether another one may help, and what became of the time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace penstock::cli {

// A step of metrics.jsonl.
struct DoneStep {
  std::int64_t step = 0;
  Seconds seconds = 0;
};

// One start of the command, until it ended.
struct Attempt {
  Seconds seconds = 0;          // in all
  Seconds pause = 0;            // before it
  int exit_code = 0;            // 128 + the signal that ended it
  std::string reason;           // its complaint, or how it ended
  bool complained = false;      // else the exit code is the launcher's
  std::int64_t resumed = 0;     // after this step; 0: from the beginning
  std::vector<DoneStep> steps;  // that it did, ascending
  std::int64_t last_step() const { return steps.empty() ? resumed : steps.back().step; }
};

struct Decision {
  bool again = false;
  Seconds pause = 0;
  std::string why;  // in words
};

// After the last of these attempts, which failed. Wrong input is not tried again, nor is a step that failed
// twice for the same reason. Pauses double from a second to a minute while no step is gained.
Decision decide(const std::vector<Attempt>& attempts, int restarts);

// What became of the wall time.
struct TimeUse {
  Seconds productive = 0;  // steps, each once
  Seconds recomputed = 0;  // steps that a later attempt did again
  Seconds other = 0;       // of attempts: starting, loading, evaluating, writing checkpoints
  Seconds pauses = 0;
  Seconds all() const { return productive + recomputed + other + pauses; }
};
TimeUse time_use(const std::vector<Attempt>& attempts);

std::string to_json(const std::vector<Attempt>& attempts);
std::string print_time_use(const std::vector<Attempt>& attempts);

// The lines of metrics.jsonl after `step`; a last line that is cut short is left out.
std::vector<DoneStep> steps_after(std::int64_t step, const std::string& metrics);

}  // namespace penstock::cli
