// SPDX-License-Identifier: Apache-2.0
// What `simulate` simulates, from whichever source: flags, a schedule file, a run file, a run directory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/schedule_flags.h"
#include "schedule/program.h"
#include "sim/result.h"
#include "sim/unit_costs.h"

namespace penstock::cli {

struct SimulateFlags {
  ScheduleFlags schedule;  // its file may be a run file or a run directory
  sim::UnitTimes times;
  std::string costs;                 // a cost table's file
  std::vector<std::string> changes;  // sim/what_if.h
  double attention = 1;
  bool json = false;
  std::string report;
  std::string trace;
};

struct Simulated {
  schedule::Program program;
  sim::Result result;
  std::optional<sim::Result> measured;  // of a run directory
  std::string measured_label;           // "step 12"
};

// Throws InputError for unreadable sources and costs, NoAnswer for illegal schedules. `overrides` are of a
// run file.
Simulated simulate_source(const SimulateFlags& flags, const std::vector<std::string>& overrides);

}  // namespace penstock::cli
