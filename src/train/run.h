// SPDX-License-Identifier: Apache-2.0
// A whole run on one rank: steps, evaluations, checkpoints and result files.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/rank_names.h"
#include "run/run.h"
#include "train/checkpoint/directory.h"
#include "train/checkpoint/saved_state.h"
#include "train/data/data.h"
#include "train/record/progress.h"
#include "train/record/run_outcome.h"

namespace penstock::train {

// Callbacks of a run; called on rank 0 only, on the thread of the run.
struct RunObserver {
  std::function<void(const ProgressState&)> progress;  // after each step
  std::function<void(const std::string&)> say;         // a message, e.g. about a skipped step
};

// The saved state that a run resumes from.
struct Resumed {
  CheckpointFacts facts;
  std::shared_ptr<SavedState> state;  // frees its memory once loaded
  std::int64_t checkpoint = 0;        // step of the newest checkpoint on disk; 0: none
};

// Controls the start of a run and an early stop.
struct RunControl {
  std::optional<Resumed> resumed;
  std::function<bool()> stop_asked;    // called on every rank after each step, on the run's thread
  bool profile = false;                // time every kernel call
  FlightRecorder* recorder = nullptr;  // this rank's; may be null
  comm::RankNames names;               // of all ranks; empty: gathered at the start
  Flops machine_flops = 0;             // per rank, for the MFU; 0: measured at the start
};

// Runs all steps. `directory` is null except on rank 0, where it receives metrics.jsonl, weights.safetensors
// and the files of write_records(), and its stop file is removed. All ranks write checkpoints to output.dir,
// unless output.gather says that only rank 0 sees it. After a stop request to any rank, or a stop file, all
// end after the same step, with a checkpoint if train.checkpoint_every > 0 and the step's numbers are finite.
// Collective. Throws RunError on failures, among them three steps in a row whose loss or gradient is not
// finite.
RunOutcome run(const run::Run& run, const TokenData& data, comm::Communicator& world,
               const RunDirectory* directory, const RunObserver& observer, const RunControl& control = {});

}  // namespace penstock::train
