// SPDX-License-Identifier: Apache-2.0
// The cost flags, shared by show and simulate: seconds per kind of action, a cost table's file, or a run's
// measurements.
#pragma once

#include <string>

#include "cli/input/schedule_flags.h"
#include "sim/costs/table.h"
#include "sim/costs/unit.h"

namespace penstock::cli {

// Adds --forward, --input, --weight, --transfer and --costs.
void add_cost_flags(CLI::App& command, sim::UnitTimes& times, std::string& costs);

// Reads a cost table's file, or takes the means of a run directory's typical step; a schedule without slices
// gets the sum over the slices of a micro-batch. Throws InputError if a run has other stages, slices or
// devices, or if the schedule has unequal numbers of slices.
sim::CostTable read_costs(const std::string& path, const schedule::Schedule& schedule);

// Whether --schedule names one that is made for given costs.
bool is_made_for_costs(const ScheduleFlags& flags);

// Throws InputError for a --memory-limit of another schedule.
void refuse_idle_limit(const ScheduleFlags& flags);

// For a schedule made for given costs, fills in the costs (each stage's means from the table if there is one,
// otherwise the seconds) and --memory-limit. Leaves other schedules as they are. Throws InputError for a
// stage without a time, and for a limit that is idle, too small or cannot be read.
void give_costs(ScheduleFlags& flags, const sim::UnitTimes& times, const std::string& costs);

}  // namespace penstock::cli
