// SPDX-License-Identifier: Apache-2.0
// Signals to a run: some request a clean end after the current step. After a SIGTERM or SIGINT, a
// SIGINT 0.4 s later ends the process at once, and so does a SIGTERM two seconds later; SIGUSR1 never does.
// SIGUSR2 asks every rank where it is (train/flight). SIGPIPE is ignored, since Ctrl-C ends "| tee log"
// before the run has written its checkpoint. It stays ignored after the life of this object, when the result
// is printed.
#pragma once

#include <map>
#include <vector>

#include <signal.h>

namespace penstock::cli {

class StopSignals {
 public:
  // Handles `signals`, which request an end, and SIGUSR2 during the life of this object; one object at a
  // time. Before and after it, SIGUSR1 and SIGUSR2 are held (cli/held_signals.h).
  explicit StopSignals(const std::vector<int>& signals);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static bool asked();  // any thread

 private:
  std::map<int, struct sigaction> before_;
};

}  // namespace penstock::cli
