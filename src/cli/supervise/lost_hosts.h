// SPDX-License-Identifier: Apache-2.0
// Which of a command's hosts the next attempt runs on.
#pragma once

#include <optional>

#include "cli/supervise/hosts.h"
#include "run/options.h"

namespace penstock::cli {

// Throws InputError if a host does not answer, or if the command asks for more ranks than the hosts have
// slots. Returns early if asked to end (signals.h).
void require_all(const MpirunCommand& command, const NamedHosts& named);

// Returns the command for another attempt: on the hosts that answer if the mesh follows the ranks and has a
// replica on these, otherwise on all hosts once they answer. Empty if asked to end meanwhile, or if none
// works after `looks` retries.
std::optional<MpirunCommand> command_on_what_is_left(const MpirunCommand& command, const NamedHosts& named,
                                                     const run::Options& options, int looks);

}  // namespace penstock::cli
