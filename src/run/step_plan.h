// SPDX-License-Identifier: Apache-2.0
// The plan of one step, whose documents are known before it begins: where its slices are cut, how many each
// micro-batch has, and what moves between devices (docs/data.md, "Slices of equal work").
#pragma once

#include <vector>

#include "run/run.h"

namespace penstock::run {

// Checks schedule.slice_tokens and settles the numbers of slices that it bounds. InputError for settings that
// need sequences of one length. Everything before the schedule is settled.
void settle_slice_tokens(Options& options);

// Whether steps of this run differ in their plans.
bool is_planned_by_step(const Run& run);

// What a plan depends on.
struct StepContent {
  std::vector<model::Documents> documents;  // of each micro-batch of one replica
  // Tokens of a sequence of each micro-batch in the replica that has fewest, and in the one that has most.
  // Equal for all replicas, whose programs must have the same collectives in the same order.
  std::vector<Tokens> fewest, most;
};

// The run with a step's documents and, where plans differ, with slices, schedule and program for them; all
// else is the run's. Equal for equal contents.
Run planned(const Run& run, StepContent content);

}  // namespace penstock::run
