// SPDX-License-Identifier: Apache-2.0
// The last steps of a finished run, read from its directory.
#pragma once

#include <string>
#include <vector>

#include "schedule/program.h"
#include "train/record/step_timeline.h"

namespace penstock::cli {

struct MeasuredRun {
  schedule::Program program;
  std::vector<train::StepTimeline> steps;
  std::size_t typical = 0;  // the step with the median time, to skip disturbed steps

  const train::StepTimeline& typical_step() const { return steps[typical]; }
};

// `processor_time`: compare steps by it, if ranks shared cores. Throws InputError for unreadable files.
MeasuredRun read_measured_run(const std::string& directory, bool processor_time = false);

// Sum over all devices and ops.
Seconds processor_seconds(const train::StepTimeline& step);

}  // namespace penstock::cli
