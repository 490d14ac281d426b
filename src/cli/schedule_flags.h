// SPDX-License-Identifier: Apache-2.0
// The flags that name a schedule, shared by show and simulate: --schedule with its sizes, or a file.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "schedule/program.h"
#include "schedule/schedule.h"

namespace penstock::cli {

// Files of schedules and programs are read up to this many bytes.
inline constexpr std::size_t kLongestSchedule = std::size_t{256} << 20;

struct ScheduleFlags {
  std::string file;         // a CSV of the text form; or
  std::string name;         // a generator
  int devices = 0;          // -p
  int micro_batches = 0;    // -m
  std::vector<int> slices;  // -n: one for all micro-batches, or one each
  int chunks = 0;           // -v
  int group = 0;
};

void add_schedule_flags(CLI::App& command, ScheduleFlags& flags);

// Generates or reads what the flags name; throws InputError.
schedule::Schedule make_schedule(const ScheduleFlags& flags);

// The program of a schedule. Throws NoAnswer with the findings, one a line, when it is not legal.
schedule::Program lower_legal(const schedule::Schedule& schedule);

}  // namespace penstock::cli
