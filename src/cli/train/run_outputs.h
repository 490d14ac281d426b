// SPDX-License-Identifier: Apache-2.0
// Output of a finished run for people, in addition to the trainer's own files.
#pragma once

#include <string>

#include "report/report.h"
#include "run/run.h"
#include "train/record/metrics.h"
#include "train/record/run_directory.h"
#include "train/run.h"

namespace penstock::cli {

// Writes the program, the measured timeline, the profile if there is one, a trace of them for Perfetto, and
// report.html.
void write_outputs(const run::Run& run, const train::RunOutcome& outcome,
                   const train::RunDirectory& directory);

// A table of the kept steps' compute time, with its heading.
std::string profile_of(const schedule::Program& program, const train::RunOutcome& outcome);

// The final table of a run: steps, losses, predicted and measured memory, the sample (empty: none) and the
// files of the run directory.
std::string result_table(const run::Run& run, const train::Summary& summary, const std::string& sample,
                         const train::RunDirectory& directory);

// The line that replaces it for a run stopped on request, or with nothing left to do.
std::string stop_line(const train::RunOutcome& outcome);
std::string finished_line(const run::Run& run);

// The memory that this many ranks need, and the machine's; on cards of theirs, and of the host what leaves.
std::string memory_remark(const run::Run& run, int ranks);

}  // namespace penstock::cli
