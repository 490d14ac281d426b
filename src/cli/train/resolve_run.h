// SPDX-License-Identifier: Apache-2.0
// From a run file and the ranks there are to a resolved run. Speeds are measured only where a choice depends
// on them.
#pragma once

#include <string>
#include <vector>

#include "cli/agree.h"
#include "comm/communicator.h"
#include "run/run.h"

namespace penstock::cli {

// The words of a command line that say what to run.
struct RunSource {
  std::string file;
  std::vector<std::string> overrides;  // "--section.key", "value", ...
  bool resumes = false;
};

// The options as written; a run that is resumed takes its own copy of a schedule whose file has gone.
run::Options read_source(const RunSource& source);

// The run file that leads to the same run.
std::string configuration_of(run::Options options);

// Seconds that ranks wait for one another before the run file has been agreed upon: train.timeout, but no
// less than hosts may take one after the other to load the program.
Seconds patience_at_start(const RunSource& source);

// For this many ranks of one process; `ranks` becomes how many of them the run needs (resume.h). Throws
// InputError or NoAnswer.
run::Run resolved_here(const RunSource& source, int& ranks);

// The same for all ranks of a launcher, which measure the machine together. Collective.
Refusal resolve_together(const RunSource& source, comm::Communicator& world, run::Run& run);

// How many of a launcher's ranks the run needs: all, but under parallel.dp = "auto". Collective.
int ranks_needed(const RunSource& source, comm::Communicator& world);

// Its train.device; empty of a run file that cannot be read, which is told where all ranks agree on it.
std::string device_of(const RunSource& source);

}  // namespace penstock::cli
