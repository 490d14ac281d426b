// SPDX-License-Identifier: Apache-2.0
// The input of `simulate`, from any source: flags, a schedule file, a run file, a run directory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/input/schedule_flags.h"
#include "cli/profile/speeds.h"
#include "model/memory/table.h"
#include "run/record/step_timeline.h"
#include "run/run.h"
#include "schedule/program.h"
#include "sim/costs/unit.h"
#include "sim/result.h"

namespace penstock::cli {

struct SimulateFlags {
  ScheduleFlags schedule;  // `file` may be a run file or a run directory
  sim::UnitTimes times;
  std::string costs;                 // path of a cost table
  std::vector<std::string> changes;  // sim/costs/what_if.h
  std::int64_t step =
      0;  // step of a run file's data, from 1, whose documents are simulated; 0: whole sequences
  double attention = 1;
  double expert_load = 1;
  std::string hardware;             // speeds for run files (cli/profile/speeds.h)
  std::optional<double> copy_gbps;  // copy rate in place of the machine's
  bool processor_time = false;      // for run directories: use the actions' processor seconds
  bool json = false;
  std::string sweep;            // sweep.h
  std::string plot;             // output path for the sweep's plot
  std::string report;           // output path
  std::string trace;            // output path
  bool memory_samples = false;  // keep samples of memory over time, for a report or a trace
};

// A measured step of a run.
struct MeasuredStep {
  std::string label;  // "step 12"
  sim::Result result;
  std::vector<std::vector<run::OpMemory>> memory;   // from the allocator, [device][compute op]; may be empty
  std::vector<std::vector<schedule::Event>> ranks;  // per rank, if several ranks form one device
};

struct Simulated {
  schedule::Program program;
  sim::Result result;
  Words notes = {};                                   // on choices made for the run, and on its documents
  Speeds speeds = {};                                 // for a run file; empty origin otherwise
  std::vector<MeasuredStep> measured;                 // for a run directory
  std::size_t typical = 0;                            // index of the measured step that gave the times
  model::MemoryTable predicted;                       // for a run file or directory
  mesh::Mesh mesh;                                    // for a run file or directory
  std::vector<std::vector<std::string>> slices = {};  // slice_notes.h
};

// Resolves a run file as if all its ranks were on this host.
run::Run resolved_run_file(const std::string& path);

// Throws InputError for unreadable sources and costs, NoAnswer for illegal schedules, programs that deadlock,
// and runs that do not fit. `overrides`: for run files.
Simulated simulate_source(const SimulateFlags& flags, const std::vector<std::string>& overrides);

}  // namespace penstock::cli
