// SPDX-License-Identifier: Apache-2.0
// The attempts of a supervised run: whether another one may help, and how the time was used.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "cli/standard_streams.h"

namespace penstock::cli {

// A completed step from metrics.jsonl.
struct DoneStep {
  std::int64_t step = 0;
  Seconds seconds = 0;
  Seconds held_up = 0;  // by checkpoints and copies, since the previous step
  Seconds time = 0;     // wall clock at its end
};

// From metrics.jsonl: the steps since the program last started, and the step that it resumed from.
struct LastStart {
  std::int64_t resumed = 0;
  Seconds load = 0;             // of weights and moments
  std::vector<DoneStep> steps;  // ascending; empty in files without starts
};
struct Recorded {
  std::int64_t last_step = 0;
  LastStart start;
  std::vector<Seconds> starts;  // wall clock at the end of each start's first step, which identifies it
};
// Skips truncated lines and lines without a step.
Recorded recorded_in(std::string_view metrics);

// Returns whether the last start in `now` is not in `before`. Its clock may be behind an earlier start's on
// another host, and it may be an earlier start again if a later one's steps were taken back.
bool has_new_start(const Recorded& now, const Recorded& before);

// One start of the command, until its end.
struct Attempt {
  Seconds began = 0;            // wall clock
  Seconds seconds = 0;          // in total
  Seconds pause = 0;            // before the start
  int exit_code = 0;            // 128 + the signal that ended it
  std::string reason;           // its complaint, or else how it ended
  bool complained = false;      // if not, the exit code is the launcher's
  bool may_pass = false;        // refused for what may be otherwise at another attempt
  std::int64_t resumed = 0;     // from this step, unknown without steps; 0: from the beginning
  Seconds load = 0;             // of the state that it resumed from, unknown without steps
  std::vector<DoneStep> steps;  // completed, ascending
  bool has_step() const { return !steps.empty(); }
  // True if the program complained about its input; otherwise the exit code may be the launcher's.
  bool refused() const;
  // True if the run is done, even if its result could not be printed.
  bool good() const { return exit_code == static_cast<int>(Exit::Done) || reason == kUnprinted; }
  // 0: none in this attempt.
  std::int64_t last_step() const { return has_step() ? steps.back().step : 0; }
};

struct Decision {
  bool again = false;
  Seconds pause = 0;
  std::string why;  // in words
};

// Decides after the last of these attempts, which failed. Does not retry a step that failed twice for the
// same reason, apart from its numbers, nor a start that did so twice in a row. Does not retry wrong input,
// unless the refusal may pass, as any may once an attempt has completed a step: a lock that a dying rank
// holds. Pauses double from 1 s to 60 s while no step is gained.
Decision decide(const std::vector<Attempt>& attempts, int restarts);

// How the wall time was used.
struct TimeUse {
  Seconds productive = 0;   // steps, each once
  Seconds recomputed = 0;   // steps that a later attempt repeated
  Seconds waiting = 0;      // from an attempt's last step to its end by failure; pauses
  Seconds checkpoints = 0;  // time that held up training, with copies in host memory
  Seconds starts = 0;       // until the first step
  Seconds other = 0;        // evaluations, final files
  Seconds all() const { return productive + recomputed + waiting + checkpoints + starts + other; }
};
TimeUse time_use(const std::vector<Attempt>& attempts);

// Time from the last step of a failed attempt to the first step of the next.
struct Recovery {
  Seconds detect = 0;   // until the attempt ended
  Seconds restart = 0;  // until weights and moments were loaded: pause, launcher, program
  Seconds load = 0;
  Seconds first_step = 0;
};
std::vector<Recovery> recoveries(const std::vector<Attempt>& attempts);

bool has_attempts(const std::string& text);  // whether it is an attempts.json

// Prints attempts.json. `earlier`: its previous text, from an earlier supervision of the same run, whose
// attempts and times are kept; invalid text counts as empty.
std::string to_json(const std::vector<Attempt>& attempts, const std::string& earlier = {});
std::string print_time_use(const std::vector<Attempt>& attempts);

// Adds the number of attempts and the use of time in attempts.json to summary.json. Returns `summary`
// unchanged if either text is invalid.
std::string with_time_use(const std::string& summary, const std::string& attempts);

}  // namespace penstock::cli
