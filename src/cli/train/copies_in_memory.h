// SPDX-License-Identifier: Apache-2.0
// A run's copies of states in the memory of its hosts (train.buddy_every; train/checkpoint/host_copies.h), as
// starts find and leave them.
#pragma once

#include <span>
#include <string>

#include "comm/communicator.h"
#include "run/options.h"

namespace penstock::cli {

// The directory of the run's copies. Collective.
std::string copies_of(const run::Options& options, comm::Communicator& world);

// A new run goes back to no copies of a run that was in its directory before, and one at its end leaves none
// of its earlier starts. Collective.
void forget_older_copies(const run::Options& options, comm::Communicator& world);

// Before ranks from `needed` on leave a run that is resumed: what their hosts' memory keeps of it goes to the
// others; a dry run only says that it would. Collective.
void bring_copies(const std::string& file, std::span<const std::string> overrides, int needed, bool dry_run,
                  comm::Communicator& world);

}  // namespace penstock::cli
