// SPDX-License-Identifier: Apache-2.0
// What a rank of `penstock train` reads and checks before it begins to work.
#pragma once

#include <memory>

#include "cli/train/check_weights.h"
#include "cli/train/resume.h"
#include "cli/train/train.h"
#include "train/run.h"

namespace penstock::cli {

// A rank's input.
struct Prepared {
  run::Run run;
  std::unique_ptr<train::TokenData> data;
  std::unique_ptr<train::RunDirectory> directory;  // rank 0
  Resumption resumption;
};

// Of a run's ranks, those that share the memory of this rank's host and of its card (0: it has none).
struct RanksHere {
  int host = 1, card = 0;
};
// All ranks are threads of this process, and take its cards by turns.
RanksHere threads_here(int ranks);

// `verified`: what this process reads of a checkpoint's files for their checksums. Throws InputError or
// NoAnswer; writes nothing.
Prepared prepare(const TrainFlags& flags, run::Run run, int ranks, const RanksHere& here,
                 WeightsShare verified = {});

// Of rank 0. Comes last, so that earlier errors leave nothing written; a dry run checks alone.
void open_directory(const TrainFlags& flags, Prepared& prepared);
void check_directory(const TrainFlags& flags, const Prepared& prepared);

// Collective. The rank with the directory also removes partial checkpoints and sets later ones aside; a dry
// run has none, and leaves all as it is.
void take_up(const TrainFlags& flags, Prepared& prepared, comm::Communicator& world);

}  // namespace penstock::cli
