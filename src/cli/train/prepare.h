// SPDX-License-Identifier: Apache-2.0
// Input of a `penstock train` rank, read and checked before the rank begins to work.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/train/check_weights.h"
#include "cli/train/resume.h"
#include "cli/train/train.h"
#include "train/run.h"

namespace penstock::cli {

// Input of one rank.
struct Prepared {
  run::Run run;
  std::unique_ptr<train::TokenData> data;
  std::optional<std::uint64_t> weights;            // sum_of_weights(), if it starts from initial weights
  std::unique_ptr<train::RunDirectory> directory;  // rank 0 only
  Resumption resumption;
};

// Numbers of ranks that share the memory of this rank's host, and of its GPU (0: no GPU).
struct RanksHere {
  int host = 1, gpu = 0;
  bool threads = false;  // ranks are threads of this process, on its GPUs round-robin
  Bytes given_back = 0;  // bytes of used host memory (copies_given_back())
};
// For ranks that are all threads of this process.
RanksHere threads_here(const TrainFlags& flags, const run::Options& options, int ranks);

// `verified`: share of a checkpoint's files whose checksums this process verifies. Throws InputError or
// NoAnswer. Writes nothing.
Prepared prepare(const TrainFlags& flags, run::Run run, int ranks, const RanksHere& here,
                 const WeightsShare& verified = {});

// A line for each item that must be equal on all ranks: settings, and checksums of the schedule, the data and
// the initial weights, which each rank reads from its own host.
std::string agreement_of(const Prepared& prepared);

// Rank 0 only. Call after all checks, so that errors leave nothing written. A resumed run first removes its
// partial checkpoints, since the disk may be full of them. A dry run only checks.
void open_directory(const TrainFlags& flags, Prepared& prepared);
void check_directory(const TrainFlags& flags, const Prepared& prepared);

// Chooses the state to resume from; a new run removes earlier copies in host memory. The rank with the
// directory also sets later checkpoints aside; a dry run has no directory and changes nothing. Throws
// InputError, the same on every rank, also if a resumed run that has kept nothing would begin with weights
// that prepare() refuses for a new run. Collective.
void take_up(const TrainFlags& flags, Prepared& prepared, comm::Communicator& world);

}  // namespace penstock::cli
