// SPDX-License-Identifier: Apache-2.0
// The checkpoint that a resumed run continues from.
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
  std::optional<train::Resumed> from;  // none: nothing was kept before the run ended
  bool finished = false;               // nothing left to do: all steps and files exist
  std::vector<std::string> remarks;    // to print: skipped checkpoints, changed settings
};

// The newest valid checkpoint of output.dir, which ranks verify together, unless the memory of their hosts
// has copies of that step or a later one. Throws InputError, the same on every rank: all checkpoints are
// damaged, or the run had ended but has none, or the checkpoint does not fit these settings and this data.
// Changes nothing on disk. Collective.
Resumption choose_state(const run::Run& run, const train::TokenData& data, comm::Communicator& world);

// Settles what the number of ranks and the newest checkpoint decide: numerics.replicas and numerics.tensor,
// if not given, are those of the checkpoint that a run resumes from; parallel.dp = "auto"; parallel.cp_mode =
// "auto", schedule.slices = 0 and schedule.chunks = 0 are as in the run directory. Returns how many of the
// ranks the run has work for: all but under "auto".
int fit_ranks(run::Options& options, int ranks, bool resumes);

// What changed of the mesh since the run directory's run file was written: a line each.
std::vector<std::string> changed_mesh(const run::Run& run);

// Settings that differ from the checkpoint's: a line each.
std::vector<std::string> changed_settings(const train::CheckpointFacts& checkpoint, const run::Run& run,
                                          int threads);

}  // namespace penstock::cli
