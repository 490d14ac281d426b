// SPDX-License-Identifier: Apache-2.0
// A run's copies of states in the memory of its hosts (train.buddy_every; train/checkpoint/host_copies.h), as
// starts find and leave them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "run/options.h"
#include "train/checkpoint/host_copies.h"

namespace penstock::cli {

// The directory of the run's copies. Collective.
std::string copies_of(const run::Options& options, comm::Communicator& world);

// The newest state later than `step` that they have, if the run makes copies. Collective.
std::optional<train::FoundCopies> newest_copies(const run::Options& options, std::int64_t step,
                                                comm::Communicator& world);

// A new run goes back to no copies of a run that was in its directory before, and one at its end leaves none
// of its earlier starts. Collective.
void forget_older_copies(const run::Options& options, comm::Communicator& world);

// Bytes of copies of earlier starts in this host's memory that a start removes or writes over. Collective.
Bytes copies_given_back(const run::Options& options, bool resumes, comm::Communicator& world);

// Before ranks from `needed` on leave a run that is resumed: what their hosts' memory keeps of it goes to the
// others; a dry run only says that it would. Collective.
void bring_copies(const run::Options& options, int needed, bool dry_run, comm::Communicator& world);

// At the end of a start (`done`: on this rank without a refusal): where it has left no copies in its hosts'
// memory, as at the end of its run, those of hosts without work go too. Collective, over all ranks.
void forget_idle_copies(const run::Options& options, int needed, bool done, comm::Communicator& world);

}  // namespace penstock::cli
