// SPDX-License-Identifier: Apache-2.0
// Prints a result: as JSON for programs, as a table for people.
#pragma once

#include <string>

#include "sim/result.h"

namespace penstock::sim {

// {"schedule", "makespan_s", "bubble_fraction", "span_bubble_fraction", "devices": [{"busy_s", "idle_s",
//  "idle_by_cause_s": {"ramp", "transfer", "copy", "imbalance", "dependency"}, "peak_in_flight",
//  "peak_in_flight_until_input", "peak_bytes", "peak_away_bytes", "peak_bytes_by_category": {..}, "memory":
//  [[time, bytes of each category..]..] if samples were kept}]}. For a deadlocked program: {"schedule",
//  "deadlock", "stalls"}.
std::string to_json(const Result& result);

// A line of totals and a table with one row per device.
std::string to_table(const Result& result);

// Two results of the same program in one table, row by row: measured next to simulated.
std::string to_comparison(const Result& measured, const Result& simulated);

}  // namespace penstock::sim
