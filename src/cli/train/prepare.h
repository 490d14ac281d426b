// SPDX-License-Identifier: Apache-2.0
// What a rank of `penstock train` reads and checks before it begins to work.
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

// A rank's input.
struct Prepared {
  run::Run run;
  std::unique_ptr<train::TokenData> data;
  std::optional<std::uint64_t> weights;            // sum_of_weights() of a run that begins with them
  std::unique_ptr<train::RunDirectory> directory;  // rank 0
  Resumption resumption;
};

// Of a run's ranks, those that share the memory of this rank's host and of its card (0: it has none).
struct RanksHere {
  int host = 1, card = 0;
  bool threads = false;  // of this process, and they take its cards by turns
  Bytes given_back = 0;  // of the host's memory that is in use (copies_given_back)
};
// All ranks are threads of this process.
RanksHere threads_here(const TrainFlags& flags, const run::Options& options, int ranks);

// `verified`: what this process reads of a checkpoint's files for their checksums. Throws InputError or
// NoAnswer; writes nothing.
Prepared prepare(const TrainFlags& flags, run::Run run, int ranks, const RanksHere& here,
                 const WeightsShare& verified = {});

// A line for each thing that all ranks must have in common: settings, and checksums of the schedule, the data
// and the initial weights, which each rank reads from its own host.
std::string agreement_of(const Prepared& prepared);

// Of rank 0. Comes last, so that earlier errors leave nothing written; a dry run checks alone.
void open_directory(const TrainFlags& flags, Prepared& prepared);
void check_directory(const TrainFlags& flags, const Prepared& prepared);

// Collective. The rank with the directory also removes partial checkpoints and sets later ones aside; a dry
// run has none, and leaves all as it is. Throws InputError, the same on every rank, also where a run that is
// resumed but has kept nothing would begin with weights that prepare() refuses to a new one.
void take_up(const TrainFlags& flags, Prepared& prepared, comm::Communicator& world);

}  // namespace penstock::cli
