// SPDX-License-Identifier: Apache-2.0
// Resolves a run from its run file and the number of ranks. Measures speeds only if a choice depends on them.
#pragma once

#include <string>
#include <vector>

#include "cli/agree.h"
#include "comm/communicator.h"
#include "run/run.h"

namespace penstock::cli {

// The part of a command line that says what to run.
struct RunSource {
  std::string file;
  std::vector<std::string> overrides;  // "--section.key", "value", ...
  bool resumes = false;
};

// Reads the options as written. A resumed run uses its own copy of a schedule whose file no longer exists.
run::Options read_source(const RunSource& source);

// Returns a run file that resolves to the same run.
std::string configuration_of(run::Options options);

// Seconds that ranks wait for each other until they agree on the run file: train.timeout, but at least as
// long as hosts may need to load the program one after another.
Seconds patience_at_start(const RunSource& source);

// Resolves for `ranks` ranks of one process, and sets `ranks` to the number that the run needs (resume.h).
// Throws InputError or NoAnswer.
run::Run resolved_here(const RunSource& source, int& ranks);

// The same for all ranks of a launcher, which measure the machine together. Collective.
Refusal resolve_together(const RunSource& source, comm::Communicator& world, run::Run& run);

// Number of a launcher's ranks that the run needs: all, except under parallel.dp = "auto". Collective.
int ranks_needed(const RunSource& source, comm::Communicator& world);

// Returns train.device; empty if the run file cannot be read, which the ranks report together later.
std::string device_of(const RunSource& source);

}  // namespace penstock::cli
