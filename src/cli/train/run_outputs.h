// SPDX-License-Identifier: Apache-2.0
// Human-readable output of a finished run, in addition to the trainer's own files.
#pragma once

#include <string>

#include "report/report.h"
#include "run/run.h"
#include "train/record/metrics.h"
#include "train/record/run_directory.h"
#include "train/run.h"

namespace penstock::cli {

// Draws the run's records: a trace for Perfetto, and report.html. Records that are too long to draw are told
// of on stderr.
void write_pages(const train::RunDirectory& directory);

// A table of the kept steps' compute time, with its heading.
std::string profile_of(const schedule::Program& program, const train::RunOutcome& outcome);

// The final table of a run: steps, losses, predicted and measured memory, the sample (may be empty) and the
// files of the run directory.
std::string result_table(const run::Run& run, const train::Summary& summary, const std::string& sample,
                         const train::RunDirectory& directory);

// The sample with its heading; empty if there is none.
std::string sample_lines(const run::Run& run, const std::string& sample);

// The lines that replace the table: for a run stopped on request, and for one with nothing left to do.
std::string stop_line(const run::Run& run, const train::RunOutcome& outcome);
std::string finished_line(const run::Run& run);

// The memory that this many ranks need, and what the machine has: on the CPU host memory, on GPUs the GPUs'
// memory, and host memory for offloaded records.
std::string memory_remark(const run::Run& run, int ranks);

}  // namespace penstock::cli
