// SPDX-License-Identifier: Apache-2.0
// The last steps of a finished run, as its directory keeps them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "run/record/step_timeline.h"
#include "schedule/program.h"

namespace penstock::run {

struct MeasuredRun {
  schedule::Program program;
  std::vector<StepTimeline> steps;
  std::size_t typical = 0;  // the step with the median time, to skip disturbed steps

  const StepTimeline& typical_step() const { return steps[typical]; }
};

// The text of a file, and its name for messages.
struct NamedText {
  std::string_view text;
  std::string_view name;
};

// Reads program.txt and timeline.json. `processor_time`: compare steps by it, if ranks shared cores. Throws
// InputError for text that is none, an illegal program, and a timeline of another program.
MeasuredRun parse_measured_run(const NamedText& program, const NamedText& timeline,
                               bool processor_time = false);

// Why the directory of a run has neither file, with how to go on: it has not ended, or its last start did no
// step. Nullopt if it has one of them, or is no run's.
std::optional<std::string> why_unmeasured(const std::string& directory);

// Throws InputError with that.
void require_measured(const std::string& directory);

// Sum over all devices and ops.
Seconds processor_seconds(const StepTimeline& step);

}  // namespace penstock::run
