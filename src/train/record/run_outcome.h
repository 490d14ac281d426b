// SPDX-License-Identifier: Apache-2.0
// The result of a run, and its files in the run directory.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "run/record/step_timeline.h"
#include "run/run.h"
#include "train/record/metrics.h"
#include "train/record/run_directory.h"
#include "train/record/step_documents.h"
#include "train/record/step_profile.h"

namespace penstock::train {

// The result of a run on rank 0; empty on the others.
struct RunOutcome {
  bool stopped = false;    // before its last step; then only the next three members are set
  std::int64_t steps = 0;  // done
  std::string checkpoint;  // directory of the newest; empty: none
  std::int64_t checkpoint_step = 0;
  Summary summary;
  std::optional<schedule::Program> program;  // the last step's, if every step has its own
  std::optional<StepDocuments> documents;    // the last step's, if sequences have several
  std::vector<run::StepTimeline> timelines;  // of the last few steps; with documents only the last
  std::vector<StepProfile> profiles;         // of the same steps; empty without RunControl::profile
  std::string weights_file;
};

// Writes the program and the measured timeline, the documents and the profile if there are any, and last
// summary.json, by which a run counts as finished: a killed process leaves no finished run without its
// records. Calls after_file() after each file.
void write_records(const RunOutcome& outcome, const run::Run& run, const RunDirectory& directory,
                   const std::function<void()>& after_file);

}  // namespace penstock::train
