// SPDX-License-Identifier: Apache-2.0
// The plan of one step, whose documents are known before it begins: slice boundaries, slices per micro-batch,
// and transfers between devices (docs/data.md, "Slices of equal work").
#pragma once

#include <vector>

#include "run/run.h"

namespace penstock::run {

// Checks schedule.slice_tokens and settles the number of slices that it bounds. Throws InputError for
// settings that need sequences of one length. All options before the schedule must be settled.
void settle_slice_tokens(Options& options);

// Whether this run's steps have different plans.
bool is_planned_by_step(const Run& run);

// The input of a plan.
struct StepContent {
  std::vector<model::Documents> documents;  // per micro-batch of one replica
  // Per micro-batch, the fewest and most tokens of a sequence over the replicas. Equal on all replicas, whose
  // programs must have the same collectives in the same order.
  std::vector<Tokens> fewest, most;
};

// Returns the run with the step's documents and, if steps differ in plans, with slices, schedule and program
// for them. Equal for equal contents.
Run planned(const Run& run, StepContent content);

}  // namespace penstock::run
