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
  std::function<void(const std::string&)> say;         // a message, as for a skipped step or an evaluation
};

// The saved state that a run goes on from.
struct Resumed {
  CheckpointFacts facts;
  std::shared_ptr<SavedState> state;  // lets go of its memory once it is loaded
  std::int64_t checkpoint = 0;        // step of the newest one on disk; 0: none
};

// The start of a run, and an early stop.
struct RunControl {
  std::optional<Resumed> resumed;
  std::function<bool()> stop_asked;    // called on every rank after each step, on the run's thread
  bool profile = false;                // time every kernel call
  FlightRecorder* recorder = nullptr;  // of this rank; may be null
  comm::RankNames names;               // of all ranks; empty: asked for at the start
  Flops machine_flops = 0;             // of a rank, for the MFU; 0: measured at the start
};

// The result of a run on rank 0; empty on the others.
struct RunOutcome {
  bool stopped = false;    // before its last step; then only the next two are set
  std::int64_t steps = 0;  // done
  std::string checkpoint;  // of that step; empty: none
  Summary summary;
  std::optional<schedule::Program> program;  // of the last step, where every step has its own
  std::optional<StepDocuments> documents;    // of the last step, if it had several in a sequence
  std::vector<StepTimeline> timelines;       // of the last few steps; with documents of the last alone
  std::vector<StepProfile> profiles;         // of the same steps; empty without RunControl::profile
  std::string weights_file;
};

// Carries out the run. On rank 0 `directory` receives metrics.jsonl, summary.json and weights.safetensors,
// and its stop file is removed; elsewhere it is null. All ranks write checkpoints to output.dir, unless
// output.gather says that only rank 0 sees it. On a stop request to any rank, or a stop file, all end after
// the same step with a checkpoint. Collective. Throws RunError on failures, among them three steps in a row
// whose loss or gradient is not finite.
RunOutcome run(const run::Run& run, const TokenData& data, comm::Communicator& world,
               const RunDirectory* directory, const RunObserver& observer, const RunControl& control = {});

}  // namespace penstock::train
