// SPDX-License-Identifier: Apache-2.0
// A whole run on one rank: step after step, evaluations, and what is left behind.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "train/checkpoint_directory.h"
#include "train/data.h"
#include "train/metrics.h"
#include "train/progress.h"
#include "train/run_directory.h"
#include "train/run_plan.h"
#include "train/step_profile.h"
#include "train/step_timeline.h"

namespace penstock::train {

// What the caller does with news of the run; called on rank 0 alone, on the thread of the run.
struct RunObserver {
  std::function<void(const ProgressState&)> progress;  // after each step
  std::function<void(const std::string&)> say;         // a line worth reading: a skipped step, an evaluation
};

// Where a run begins, and what may end it before its last step.
struct RunControl {
  std::optional<CheckpointFacts> resumed;  // of the checkpoint under output.dir to go on from
  std::function<bool()> stop_asked;        // asked on every rank after each step, on the thread of the run
};

// What rank 0 has in hand after a run; empty on the others.
struct RunOutcome {
  bool stopped = false;    // before its last step; then only the next two are given
  std::int64_t steps = 0;  // done
  std::string checkpoint;  // of that step; empty: there is none
  Summary summary;
  std::vector<StepTimeline> timelines;  // of the last few steps
  std::vector<StepProfile> profiles;    // of the same steps; empty unless the plan asks for it
  std::string weights_file;
};

// Carries out the plan. On rank 0 `directory` receives metrics.jsonl, summary.json, weights.safetensors and
// the stop file's removal; elsewhere it is null. Checkpoints go to output.dir from all ranks. When any rank
// is asked to stop, or the directory has a stop file, all end after the same step with a checkpoint.
// Collective. Throws RunError on failures, among them three steps in a row whose loss or gradient is not
// finite.
RunOutcome run(const RunPlan& plan, const TokenData& data, comm::Communicator& pipeline,
               const RunDirectory* directory, const RunObserver& observer, const RunControl& control = {});

// Where the checkpoints of a run stand.
CheckpointDirectory checkpoints_of(const RunPlan& plan);

}  // namespace penstock::train
