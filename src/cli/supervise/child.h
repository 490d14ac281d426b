// SPDX-License-Identifier: Apache-2.0
// Runs a command in another process and reads its complaints on their way to stderr.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace penstock::cli {

struct ChildEnd {
  int exit_code = 0;      // 128 + the signal that ended it
  int signal = 0;         // that ended it, or, by its exit code, a command of its own; 0: none
  std::string complaint;  // why it failed: a "penstock: ..." line of its stderr; empty: none
};

// Runs the command until it and all processes that it started have ended. Kills processes that outlive it by
// a few seconds, and a command that does not end within seconds after one of its ranks reported a failure.
// Leaves earlier children of this process alone. A PassingOn (signals.h) forwards signals to the command;
// empty if it has been asked to end before the command is started. SIGPIPE ends the command even if this
// process ignores it. Throws InputError if it cannot be started.
std::optional<ChildEnd> run_child(const std::vector<std::string>& words);

// Runs all commands at once, without output, for at most `seconds`, or until a PassingOn is asked to end.
// Kills those that have not ended by then, with all processes that they started, and processes that outlive
// the others by a few seconds. Returns which ended with exit code 0. Throws RunError if a process cannot be
// created.
std::vector<bool> which_succeed(const std::vector<std::vector<std::string>>& commands, double seconds);

// Sleeps. Returns false early if a PassingOn is asked to end.
bool pause_for(double seconds);

}  // namespace penstock::cli
