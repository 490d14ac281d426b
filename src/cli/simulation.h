// SPDX-License-Identifier: Apache-2.0
// What `simulate` simulates, from whichever source: flags, a schedule file, a run file, a run directory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/resolve.h"
#include "cli/schedule_flags.h"
#include "model/memory_table.h"
#include "schedule/program.h"
#include "sim/result.h"
#include "sim/unit_costs.h"
#include "train/op_memory.h"

namespace penstock::cli {

struct SimulateFlags {
  ScheduleFlags schedule;  // its file may be a run file or a run directory
  sim::UnitTimes times;
  std::string costs;                 // a cost table's file
  std::vector<std::string> changes;  // sim/what_if.h
  double attention = 1;
  std::string hardware;             // whose copies; of run files
  std::optional<double> copy_gbps;  // instead
  bool processor_time = false;      // of a run directory: actions take their processor seconds
  bool json = false;
  std::string sweep;   // sweep.h
  std::string plot;    // a file to draw the sweep to
  std::string report;  // files to write; with either, memory is sampled over time
  std::string trace;
};

// A step that a run measured.
struct MeasuredStep {
  std::string label;  // "step 12"
  sim::Result result;
  std::vector<std::vector<train::OpMemory>> memory;  // by the allocator, [device][compute op]; may be empty
};

struct Simulated {
  schedule::Program program;
  sim::Result result;
  std::string note = {};               // what was chosen for schedule.exchange = "auto"; may be empty
  std::vector<MeasuredStep> measured;  // of a run directory
  std::size_t typical = 0;             // the measured step whose times the simulation took
  model::MemoryTable predicted;        // of a run file or directory
};

// The options that a run directory was made with.
ResolvedRun resolved_run_of(const std::string& directory);

// Throws InputError for unreadable sources and costs, NoAnswer for illegal schedules. `overrides` are of a
// run file.
Simulated simulate_source(const SimulateFlags& flags, const std::vector<std::string>& overrides);

}  // namespace penstock::cli
