// SPDX-License-Identifier: Apache-2.0
// The checkpoint that a run resumes from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "run/run.h"
#include "train/data/data.h"
#include "train/run.h"

namespace penstock::cli {

struct Resumption {
  std::optional<train::Resumed> from;  // empty: the run broke off before it kept anything
  bool finished = false;               // nothing left to do: all steps and files exist
  std::vector<std::string> remarks;    // to print: skipped checkpoints, changed settings
};

// Returns the newest valid checkpoint of output.dir, which the ranks verify together, or copies in host
// memory if they are of a later step. Throws InputError, the same on every rank, if all
// checkpoints are damaged, the run had ended but has none, or the state does not fit these settings and this
// data. A run that finished without checkpoints, by the same model, data and training, is finished. Changes
// nothing on disk. Collective.
Resumption choose_state(const run::Run& run, const train::TokenData& data, comm::Communicator& world);

// Settles options that depend on the number of ranks and on the resumed run: numerics.replicas and
// numerics.tensor, if not given, are the newest checkpoint's; parallel.cp_mode = "auto", schedule.slices = 0
// and schedule.chunks = 0 are as in the run directory; parallel.dp = "auto". Returns how many of the ranks
// have work: all, except under "auto".
int fit_ranks(run::Options& options, int ranks, bool resumes);

// Differences between the run's mesh and that of the steps up to `step` in its directory, one line each.
std::vector<std::string> changed_mesh(const run::Run& run, std::int64_t step);

// Settings that differ from the checkpoint's, one line each.
std::vector<std::string> changed_settings(const train::CheckpointFacts& checkpoint, const run::Run& run,
                                          int threads);

}  // namespace penstock::cli
