// SPDX-License-Identifier: Apache-2.0
// Ways to pack a run's documents and to cut its slices, and what each comes to, before anything is trained.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "run/run.h"
#include "run/step_plan.h"
#include "train/data/data.h"

namespace penstock::cli {

// What every step has, of the choice.
struct DataChoice {
  std::string packing = "concat", cut = "tokens";
  Tokens slice_tokens = 0;
  std::int64_t slices = 0;  // 0: as given
};

// Means over the simulated steps.
struct DataOutcome {
  DataChoice choice;
  double padding = 0;        // tokens of no document, of all
  double cut_documents = 0;  // parts that do not begin their document, of all documents and parts
  double attended = 1;       // pairs of queries and keys, of those without documents
  double slots = 0;          // greatest work over the mean: of the devices in a slot; 0 without slots,
  double micro_batches = 1;  // of micro-batches,
  double replicas = 1;       // of replicas
  double idle = 0;           // of the devices' time
  Seconds step_s = 0;        // of the replica with the most work
  Seconds planning_s = 0;    // that this machine took to plan a step, at most
  double tokens_per_second = 0;
  // Of the work that is no padding, by schedule.attention_cost: what tells choices apart, since tokens of cut
  // documents cost less.
  Flops work_per_second = 0;
};

// The choices that the run file's schedule and documents allow: every packing, and slices cut by tokens and
// by work. With `slice_tokens` > 0 packed ones also with slices of so many tokens. Where the run file gives
// schedule.slice_tokens, the others have as many slices as a whole sequence then has.
std::vector<DataChoice> choices_of(const run::Options& options, Tokens slice_tokens);

// The run file with the choice, without keys that the choice leaves no meaning.
run::Options with_choice(run::Options options, const DataChoice& choice);

// What that step of the run's data has, from 1 on, for the replica with the most work.
run::StepContent content_of_step(const run::Run& run, std::int64_t step);

// Simulates so many steps from the first on. `lengths`: of the documents, instead of the run's data; or
// empty.
DataOutcome outcome_of(run::Options options, const DataChoice& choice, std::span<const Tokens> lengths,
                       std::int64_t steps, const run::Machine& machine);

// The run's data, or documents of these lengths, whose tokens are 0.
train::TokenData open_data(const run::Run& run, std::span<const Tokens> lengths);

}  // namespace penstock::cli
