// SPDX-License-Identifier: Apache-2.0
// The run that train carries out, of its run file and the ranks that were started.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/agree.h"
#include "comm/communicator.h"
#include "run/run.h"

namespace penstock::cli {

struct TrainFlags {
  std::string file;
  int ranks = 1;
  bool print_config = false;
  bool dry_run = false;
  bool profile = false;
  bool resume = false;
  std::int64_t sample = 0;
  std::vector<std::string> overrides;
};

std::string configuration_of(run::Options options);

// For this many ranks on this host, or for those of them that the run needs, which `ranks` becomes; speeds
// are measured only where a choice depends on them.
run::Run resolved_here(const TrainFlags& flags, int& ranks);

// The same for all ranks of a launcher together, which measure the machine together. Collective.
Refusal resolve_together(const TrainFlags& flags, comm::Communicator& world, run::Run& run);

// How many of those that were started have work, by parallel.dp = "auto"; wrong input is left to be reported
// by all. Collective.
int ranks_needed(const TrainFlags& flags, comm::Communicator& world);

// One line where fewer are needed than were started.
void tell_idle(int needed, int started);

}  // namespace penstock::cli
