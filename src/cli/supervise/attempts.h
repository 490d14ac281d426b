// SPDX-License-Identifier: Apache-2.0
// The attempts of a supervised run: whether another one may help, and what became of the time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "cli/standard_streams.h"

namespace penstock::cli {

// A step of metrics.jsonl.
struct DoneStep {
  std::int64_t step = 0;
  Seconds seconds = 0;
  Seconds held_up = 0;  // by checkpoints and copies, since the step before
  Seconds time = 0;     // wall clock at its end
};

// Of metrics.jsonl: the steps since the program last started, and what it went on from.
struct LastStart {
  std::int64_t resumed = 0;
  Seconds load = 0;             // weights and moments
  std::vector<DoneStep> steps;  // ascending; empty in files without starts
};
struct Recorded {
  std::int64_t last_step = 0;
  LastStart start;
  std::vector<Seconds> starts;  // wall clock at the end of the first step of each, which tells them apart
};
// Lines that are no step's, or cut short, are left out.
Recorded recorded_in(std::string_view metrics);

// Whether the last start is none that was recorded before. Its clock may be behind that of an earlier start
// on another host; and the last start may be an earlier one again, where a later one's steps were taken back.
bool has_new_start(const Recorded& now, const Recorded& before);

// One start of the command, until it ended.
struct Attempt {
  Seconds began = 0;            // wall clock
  Seconds seconds = 0;          // in all
  Seconds pause = 0;            // before it
  int exit_code = 0;            // 128 + the signal that ended it
  std::string reason;           // its complaint, or how it ended
  bool complained = false;      // else the exit code is the launcher's
  std::int64_t resumed = 0;     // after this step; 0: from the beginning
  Seconds load = 0;             // of what it resumed from
  std::vector<DoneStep> steps;  // that it did, ascending
  // By a complaint of the program about its input; else the exit code may be the launcher's.
  bool refused() const;
  // The run is done, though its result may not have been printed.
  bool good() const { return exit_code == static_cast<int>(Exit::Done) || reason == kUnprinted; }
  std::int64_t last_step() const { return steps.empty() ? resumed : steps.back().step; }
};

struct Decision {
  bool again = false;
  Seconds pause = 0;
  std::string why;  // in words
};

// After the last of these attempts, which failed. Wrong input is not tried again, nor is a step that failed
// twice for the same reason, its numbers aside. Pauses double from a second to a minute while no step is
// gained.
Decision decide(const std::vector<Attempt>& attempts, int restarts);

// What became of the wall time.
struct TimeUse {
  Seconds productive = 0;   // steps, each once
  Seconds recomputed = 0;   // steps that a later attempt did again
  Seconds waiting = 0;      // after an attempt's last step until its failure had ended it; pauses
  Seconds checkpoints = 0;  // that held up training, copies in hosts' memory included
  Seconds starts = 0;       // until the first step
  Seconds other = 0;        // evaluations, final files
  Seconds all() const { return productive + recomputed + waiting + checkpoints + starts + other; }
};
TimeUse time_use(const std::vector<Attempt>& attempts);

// How long it took from the last step of a failed attempt to the first of the next.
struct Recovery {
  Seconds detect = 0;   // until the attempt had ended
  Seconds restart = 0;  // until weights and moments were loaded: pause, launcher, program
  Seconds load = 0;
  Seconds first_step = 0;
};
std::vector<Recovery> recoveries(const std::vector<Attempt>& attempts);

// attempts.json. `earlier`: what it said before, of the same run under another supervision; its attempts and
// their time stay. What is no such text counts as none.
std::string to_json(const std::vector<Attempt>& attempts, const std::string& earlier = {});
std::string print_time_use(const std::vector<Attempt>& attempts);

// summary.json with the count of attempts and the use of time that attempts.json tells; as it is where it is
// no JSON object.
std::string with_time_use(const std::string& summary, const std::string& attempts);

}  // namespace penstock::cli
