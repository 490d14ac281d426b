// SPDX-License-Identifier: Apache-2.0
// The flags that name a schedule, shared by show and simulate: --schedule with its sizes, or a file.
#pragma once

#include <string>
#include <vector>

#include "schedule/passes/lower.h"
#include "schedule/program.h"
#include "schedule/request.h"
#include "schedule/schedule.h"
#include "sim/costs/costs.h"
#include "sim/costs/unit.h"

namespace CLI {
class App;
}

namespace penstock::cli {

// Size limit for files of schedules and programs, in bytes.
inline constexpr std::size_t kLongestSchedule = std::size_t{256} << 20;

struct ScheduleFlags {
  std::string file;         // a CSV file, or
  std::string name;         // a generator
  int devices = 0;          // -p
  int micro_batches = 0;    // -m
  std::vector<int> slices;  // -n: one for all micro-batches, or one per micro-batch
  int chunks = 0;           // -v
  int group = 0;
  double offload = 0;               // offloaded share of each record; not for run files
  Bytes record = sim::kUnitRecord;  // bytes per chunk and slice, with offloading
  bool vocabulary_parallel = false;
  std::string exchange = "off";     // context exchange: off, paired or levelled
  int exchange_limit = 1000;        // K,V slices
  double transfer_in_forwards = 0;  // of a transfer, in units of a forward; only for simulate
  std::string memory_limit;         // micro-batches or bytes, for schedules made for given costs
  schedule::StageCosts costs;       // for the same, set by give_costs() (stage_costs.h)
};

void add_schedule_flags(CLI::App& command, ScheduleFlags& flags);

// Returns the request to the generator, with its default number of chunks. Throws InputError without a known
// name and sizes.
schedule::Request request_of(const ScheduleFlags& flags);

// Throws InputError for flags that a schedule file already determines; a run file or run directory determines
// more.
void refuse_beside_file(const ScheduleFlags& flags);
void refuse_beside_run(const ScheduleFlags& flags);

// Generates or reads the schedule. Throws InputError.
schedule::Schedule make_schedule(const ScheduleFlags& flags);

// Lowers a schedule to a program according to the flags. Throws NoAnswer with one finding per line if it is
// not legal, InputError for a sharded vocabulary or context exchange without slots. Copies and messages have
// the sizes in `bytes`; without it, the flags' share of unit records is offloaded (sim/lowering.h).
schedule::Program lower_legal(const schedule::Schedule& schedule, const ScheduleFlags& flags);
schedule::Program lower_legal(const schedule::Schedule& schedule, const ScheduleFlags& flags,
                              schedule::Lowering bytes);

// The flags' unit record; empty without offloading.
sim::RecordBytes unit_record(const ScheduleFlags& flags);

}  // namespace penstock::cli
