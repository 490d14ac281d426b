// SPDX-License-Identifier: Apache-2.0
// What a finished run leaves for people to look at, beside the trainer's own files.
#pragma once

#include <string>

#include "report/report.h"
#include "train/metrics.h"
#include "train/run.h"
#include "train/run_directory.h"
#include "train/run_plan.h"

namespace penstock::cli {

// Writes the program, the measured timeline, the profile if there is one, a trace of them for Perfetto, and
// report.html.
void write_outputs(const train::RunPlan& plan, const train::RunOutcome& outcome,
                   const train::RunDirectory& directory);

// Where the compute time of the kept steps went: a table, its heading first.
std::string profile_of(const schedule::Program& program, const train::RunOutcome& outcome);

// The table that a run ends with: steps, losses, predicted beside measured memory, the sample (empty: none)
// and the files of the run directory.
std::string result_table(const train::RunPlan& plan, const train::Summary& summary, const std::string& sample,
                         const train::RunDirectory& directory);

// Instead of it: of a run that was asked to stop, and of one that had nothing left to do.
std::string stop_line(const train::RunOutcome& outcome);
std::string finished_line(const train::RunPlan& plan);

// What so many ranks need beside what this machine has.
std::string memory_remark(const train::RunPlan& plan, int ranks);

}  // namespace penstock::cli
