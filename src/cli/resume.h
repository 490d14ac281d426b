// SPDX-License-Identifier: Apache-2.0
// Where a resumed run goes on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "train/checkpoint_facts.h"
#include "train/data.h"
#include "train/run_plan.h"

namespace penstock::cli {

struct Resumption {
  std::optional<train::CheckpointFacts> checkpoint;  // none: none was written before the run ended
  bool finished = false;                             // nothing is left to do: every step and file is there
  std::vector<std::string> remarks;                  // to be told: what was passed over, what has changed
};

// The newest valid checkpoint of output.dir, which ranks look through together. Throws InputError, the same
// on every rank: all checkpoints are damaged, or none is there though the run had ended, or the checkpoint
// fits no run with these settings and this data. Changes nothing on the disk. Collective.
Resumption choose_checkpoint(const train::RunPlan& plan, const train::TokenData& data,
                             comm::Communicator& world);

// Whether the run goes on with other settings than the checkpoint's that its bits depend on: a line each.
std::vector<std::string> changed_settings(const train::CheckpointFacts& checkpoint,
                                          const train::RunPlan& plan, int threads);

}  // namespace penstock::cli
