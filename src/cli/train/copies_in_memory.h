// SPDX-License-Identifier: Apache-2.0
// A run's copies of states in host memory (train.buddy_every; train/checkpoint/host_copies.h), as starts of
// the run find and leave them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "run/options.h"
#include "train/checkpoint/host_copies.h"

namespace penstock::cli {

// Returns the directory of the run's copies. Collective.
std::string copies_of(const run::Options& options, comm::Communicator& world);

// Returns the newest state in the copies later than `step`, if an earlier start of the run made copies, also
// for a start that makes none. Collective.
std::optional<train::FoundCopies> newest_copies(const run::Options& options, std::int64_t step,
                                                comm::Communicator& world);

// Removes the copies of earlier starts. Call when a new run begins, so that it never resumes from a previous
// run in its directory, and for a finished run. Collective.
void forget_older_copies(const run::Options& options, comm::Communicator& world);

// Bytes of earlier starts' copies in this host's memory that a start removes or overwrites. Collective.
Bytes copies_given_back(const run::Options& options, bool resumes, comm::Communicator& world);

// Call before ranks from `needed` on leave a resumed run. Sends the copies in memory of hosts that have only
// such ranks to other hosts; a dry run only says that it would. Collective.
void bring_copies(const run::Options& options, int needed, bool dry_run, comm::Communicator& world);

// Call at the end of a start. `done`: this rank ended without a refusal. If the start left no copies on hosts
// with work, as at the end of a run, removes those on hosts without work. Collective over all ranks.
void forget_idle_copies(const run::Options& options, int needed, bool done, comm::Communicator& world);

}  // namespace penstock::cli
