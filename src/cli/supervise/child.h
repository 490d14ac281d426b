// SPDX-License-Identifier: Apache-2.0
// Runs a command in another process and reads its complaints on their way to stderr.
#pragma once

#include <string>
#include <vector>

namespace penstock::cli {

struct ChildEnd {
  int exit_code = 0;      // 128 + the signal that ended it
  std::string complaint;  // why it failed: a "penstock: ..." line of its stderr; empty: none
  bool stopped = false;   // this process was asked to end meanwhile, and passed it on
};

// Runs the command until it and all processes that it started have ended. Kills processes that outlive it by
// a few seconds, and a command that does not end within seconds after one of its ranks reported a failure.
// Leaves earlier children of this process alone. Forwards SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 to the
// command. SIGPIPE ends the command even if this process ignores it. Throws InputError if it cannot be
// started.
ChildEnd run_child(const std::vector<std::string>& words);

// Runs all commands at once, without output, for at most `seconds`. Returns which ended with exit code 0.
// Throws RunError if a process cannot be created.
std::vector<bool> which_succeed(const std::vector<std::vector<std::string>>& commands, double seconds);

// Sleeps. Returns false early if this process is asked to end.
bool pause_for(double seconds);

}  // namespace penstock::cli
