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

// A line for each device: predicted beside measured peak.
std::string memory_comparison(const train::Summary& summary);

// The files of a run directory, a line each.
std::string list_outputs(const train::RunDirectory& directory);

}  // namespace penstock::cli
