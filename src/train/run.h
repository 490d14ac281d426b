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
#include "train/record/metrics.h"
#include "train/record/progress.h"
#include "train/record/run_directory.h"
#include "train/record/step_documents.h"
#include "train/record/step_profile.h"
#include "train/record/step_timeline.h"

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

// The result of a run on rank 0; empty on the others.
struct RunOutcome {
  bool stopped = false;    // before its last step; then only the next two members are set
  std::int64_t steps = 0;  // done
  std::string checkpoint;  // directory, of step `steps`; empty: none
  Summary summary;
  std::optional<schedule::Program> program;  // the last step's, if every step has its own
  std::optional<StepDocuments> documents;    // the last step's, if sequences have several
  std::vector<StepTimeline> timelines;       // of the last few steps; with documents only the last
  std::vector<StepProfile> profiles;         // of the same steps; empty without RunControl::profile
  std::string weights_file;
};

// Runs all steps. `directory` is null except on rank 0, where it receives metrics.jsonl, summary.json and
// weights.safetensors, and its stop file is removed. All ranks write checkpoints to output.dir, unless
// output.gather says that only rank 0 sees it. After a stop request to any rank, or a stop file, all end
// after the same step, with a checkpoint if train.checkpoint_every > 0. Collective. Throws RunError on
// failures, among them three steps in a row whose loss or gradient is not finite.
RunOutcome run(const run::Run& run, const TokenData& data, comm::Communicator& world,
               const RunDirectory* directory, const RunObserver& observer, const RunControl& control = {});

}  // namespace penstock::train
