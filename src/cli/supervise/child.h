// SPDX-License-Identifier: Apache-2.0
// A command carried out by another process, whose complaints are read on their way to stderr.
#pragma once

#include <string>
#include <vector>

namespace penstock::cli {

struct ChildEnd {
  int exit_code = 0;      // 128 + the signal that ended it
  std::string complaint;  // why it failed: one of its lines "penstock: ..." on stderr, whole; empty: none
  bool stopped = false;   // this process was asked to end meanwhile, and passed that on
};

// Runs the command until it and all processes that it started have ended; those that outlive it by seconds
// are killed, and so is a command that has not ended seconds after one of its ranks told of its failure.
// Children that this process had before are left alone.
// SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 to this process go to the command's; SIGPIPE ends the command even
// where this process ignores it. Throws InputError when it cannot be started.
ChildEnd run_child(const std::vector<std::string>& words);

// Carries out all commands at once, in silence, for so many seconds at most: which of them ended with exit
// code 0. Throws RunError when there is no process for one of them.
std::vector<bool> which_succeed(const std::vector<std::vector<std::string>>& commands, double seconds);

// Sleeps so long; false: this process was asked to end meanwhile.
bool pause_for(double seconds);

}  // namespace penstock::cli
