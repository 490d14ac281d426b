// SPDX-License-Identifier: Apache-2.0
// What would help a configuration that somebody runs today: the nearest ones of its trainer that are faster,
// or that fit where it does not.
#pragma once

#include <string>
#include <vector>

#include "plan/trainers/settings.h"

namespace penstock::plan {

struct Change {
  Candidate candidate;
  std::string text;  // in the trainer's words
  int steps = 1;     // sizes or choices that change
};

// At most `count`: first those that one step away are the fastest, then those two steps away. A step is twice
// or half a degree (replicas make up for it), twice or half the micro-batch, another number of stages a
// device, another schedule, other recomputation, twice or half the copies of shared weights, another time at
// which these are freed.
std::vector<Change> nearest_changes(const Question& question, const Candidate& today, std::size_t count = 3);

// Today's configuration for people: time and memory by term, what limits it, and these changes.
std::string explain_today(const Plan& plan, const Question& question);

}  // namespace penstock::plan
