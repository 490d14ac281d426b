// SPDX-License-Identifier: Apache-2.0
// Suggestions for an existing configuration: the nearest ones of its trainer that are faster, or that fit if
// it does not.
#pragma once

#include <string>
#include <vector>

#include "plan/trainers/job.h"

namespace penstock::plan {

struct Change {
  Candidate candidate;
  std::string text;  // in the trainer's own words
  int steps = 1;     // sizes or choices that change
};

// At most `count`: first those one step away, then those two steps away that are faster than all of them,
// each fastest first. A step doubles or halves a degree (replicas make up for it), the micro-batch or the
// copies of sharded weights; or it changes the stages per device, the schedule, the recomputation, or when
// sharded weights are freed; or it is one of Job::engine_edits. A change is judged as the job is read with
// it.
std::vector<Change> nearest_changes(const Job& job, const Candidate& today, std::size_t count = 3);

// Text about today's configuration: time and memory by term, the bottleneck, and these changes.
std::string explain_today(const Plan& plan, const Job& job);

}  // namespace penstock::plan
