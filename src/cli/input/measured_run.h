// SPDX-License-Identifier: Apache-2.0
// Reads the last steps of a finished run from its directory.
#pragma once

#include <string>

#include "run/record/measured_run.h"

namespace penstock::cli {

// Throws InputError for a run that has not ended, for unreadable files, and as run::parse_measured_run.
run::MeasuredRun read_measured_run(const std::string& directory, bool processor_time = false);

}  // namespace penstock::cli
