// SPDX-License-Identifier: Apache-2.0
// The flags that name a schedule, shared by show and simulate: --schedule with its sizes, or a file.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "schedule/program.h"
#include "schedule/schedule.h"
#include "sim/costs.h"

namespace penstock::cli {

// Files of schedules and programs are read up to this many bytes.
inline constexpr std::size_t kLongestSchedule = std::size_t{256} << 20;

// Bytes of a schedule's records, for want of a model, where some of them leave.
inline constexpr Bytes kUnitRecord = 1'000'000;

struct ScheduleFlags {
  std::string file;         // a CSV of the text form; or
  std::string name;         // a generator
  int devices = 0;          // -p
  int micro_batches = 0;    // -m
  std::vector<int> slices;  // -n: one for all micro-batches, or one each
  int chunks = 0;           // -v
  int group = 0;
  double offload =
      0;  // share of each record that leaves; of schedules, whose records count kUnitRecord bytes
  bool vocabulary_parallel = false;
  std::string exchange = "off";  // context exchange: off, paired or levelled
  int exchange_limit = 1000;     // K,V slices
  double latency = 0;            // of a transfer, in forwards; known to simulate alone
};

void add_schedule_flags(CLI::App& command, ScheduleFlags& flags);

// Generates or reads what the flags name; throws InputError.
schedule::Schedule make_schedule(const ScheduleFlags& flags);

// The program of a schedule, as the flags say how to lower it. Throws NoAnswer with the findings, one a line,
// when it is not legal, InputError when its vocabulary is to be sharded or attention exchanged and it has no
// slots.
schedule::Program lower_legal(const schedule::Schedule& schedule, const ScheduleFlags& flags);

// The flags' unit record; nothing where no record leaves.
sim::RecordBytes unit_record(const ScheduleFlags& flags);

}  // namespace penstock::cli
