// SPDX-License-Identifier: Apache-2.0
// The costs of flags, shared by show and simulate: seconds of a kind everywhere, a table's file, or what a
// run measured.
#pragma once

#include <string>

#include "cli/input/schedule_flags.h"
#include "sim/costs/table.h"
#include "sim/costs/unit.h"

namespace penstock::cli {

// --forward, --input, --weight, --transfer and --costs.
void add_cost_flags(CLI::App& command, sim::UnitTimes& times, std::string& costs);

// Of a table's file, or the means of a run directory's typical step. A run with slices gives schedules
// without slices the sum over a micro-batch's. Throws InputError when a run has other stages, slices or
// devices, or the schedule unequal numbers of slices.
sim::CostTable read_costs(const std::string& path, const schedule::Schedule& schedule);

// Gives a schedule that is made for given costs those of the flags: each stage's means from the table, if
// there is one, otherwise the seconds; and --memory-limit. Other schedules stay; they take no memory limit.
// Throws InputError for a stage without a time and for a limit that is too small or cannot be read.
void give_costs(ScheduleFlags& flags, const sim::UnitTimes& times, const std::string& costs);

}  // namespace penstock::cli
