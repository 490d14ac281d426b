// SPDX-License-Identifier: Apache-2.0
// The one place that checks what a run file's options say together, and fills in what they leave open.
#pragma once

#include <string>
#include <vector>

#include "model/memory_policy.h"
#include "model/shape.h"
#include "model/slices.h"
#include "schedule/schedule.h"
#include "train/options.h"

namespace penstock::cli {

struct ResolvedRun {
  train::RunOptions options;    // every option given; printed and read again it resolves to itself
  schedule::Schedule schedule;  // legal, for parallel.pp devices and batch / micro_batch micro-batches
  std::vector<model::LayerRange> layers;  // of each stage
  std::vector<model::KeepSet> keep;       // of each layer: what it keeps for the backward
  int threads = 1;                        // of a rank
  std::string exchange_note;              // what was chosen for schedule.exchange = "auto"; may be empty
  std::string memory_note;  // what was chosen for an "auto" of the section [memory]; may be empty
};

// Reads model.config and schedule.file where they are given, and generates the schedule. Throws InputError of
// one line naming the option, its value and what would be right: heads that do not divide hidden, more
// devices than layers, more slices than tokens, a batch that micro_batch does not divide, an unknown schedule
// (naming the nearest), anything that is not there yet. Throws NoAnswer when schedule.file holds an illegal
// schedule, and when nothing that "auto" may choose fits memory.limit. `threads` is what a rank has where
// train.threads = 0 leaves that open: what kernels take in memory depends on it.
ResolvedRun resolve(train::RunOptions options, int threads = 1);

// Throws InputError for the first thing asked for that the trainer does not do yet.
void check_trainable(const train::RunOptions& options);

// The slices of a micro-batch of the run that has so many.
std::vector<model::TokenRange> cut(const ResolvedRun& run, int slices);

// Throws InputError unless `ranks` processes or threads are what the mesh needs.
void check_ranks(const schedule::ParallelOptions& parallel, std::int64_t ranks);

}  // namespace penstock::cli
