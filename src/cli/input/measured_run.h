// SPDX-License-Identifier: Apache-2.0
// The last steps of a finished run, as its directory holds them.
#pragma once

#include <string>
#include <vector>

#include "schedule/program.h"
#include "train/record/step_timeline.h"

namespace penstock::cli {

struct MeasuredRun {
  schedule::Program program;
  std::vector<train::StepTimeline> steps;
  std::size_t typical = 0;  // the step with the median time, so that a disturbed step is not used

  const train::StepTimeline& typical_step() const { return steps[typical]; }
};

// By processor time, if asked: for runs whose ranks shared cores. Throws InputError for unreadable files.
MeasuredRun read_measured_run(const std::string& directory, bool processor_time = false);

// Over all devices and ops.
Seconds processor_seconds(const train::StepTimeline& step);

}  // namespace penstock::cli
