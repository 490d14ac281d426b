// SPDX-License-Identifier: Apache-2.0
// Ways to pack a run's documents and to cut its slices, and the simulated outcome of each.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "run/run.h"
#include "run/step_plan.h"
#include "train/data/data.h"

namespace penstock::cli {

// One way to pack documents and cut slices, for all steps.
struct DataChoice {
  std::string packing = "concat", cut = "tokens";
  Tokens slice_tokens = 0;
  std::int64_t slices = 0;  // 0: as in the run file
};

// Means over the simulated steps.
struct DataOutcome {
  DataChoice choice;
  double padding = 0;        // padding over all tokens
  double cut_documents = 0;  // continued parts over all documents and parts
  double attended = 1;       // attended query-key pairs over causal ones without documents
  double slots = 0;          // greatest work over the mean, of the devices in a slot; 0 without slots
  double micro_batches = 1;  // the same, of micro-batches
  double replicas = 1;       // the same, of replicas
  double idle = 0;           // fraction of the devices' time
  Seconds step_s = 0;        // of the replica with the most work
  Seconds planning_s = 0;    // longest time this machine took to plan a step
  double tokens_per_second = 0;
  // Work without padding, by schedule.attention_cost. Compare choices by it, since tokens of cut documents
  // cost less.
  Flops work_per_second = 0;
};

// Returns the choices that the run file's schedule and documents allow: every packing, with slices cut by
// tokens and by work. If `slice_tokens` > 0, packed choices also come with slices of that many tokens. If the
// run file sets schedule.slice_tokens, the other choices have as many slices as a whole sequence then has.
std::vector<DataChoice> choices_of(const run::Options& options, Tokens slice_tokens);

// Applies the choice to the run file and resets keys that have no meaning under it.
run::Options with_choice(run::Options options, const DataChoice& choice);

// Content of a step of the run's data, for the replica with the most work. Steps count from 1.
run::StepContent content_of_step(const run::Run& run, std::int64_t step);

// Simulates the first `steps` steps. `lengths`: document lengths that replace the run's data; empty: the
// run's data.
DataOutcome outcome_of(run::Options options, const DataChoice& choice, std::span<const Tokens> lengths,
                       std::int64_t steps, const run::Machine& machine);

// Opens the run's data, or documents of these lengths filled with token 0.
train::TokenData open_data(const run::Run& run, std::span<const Tokens> lengths);

}  // namespace penstock::cli
