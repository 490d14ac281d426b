// SPDX-License-Identifier: Apache-2.0
// Signals to a run: those that request a clean end after the current step, of which a second one ends the
// process at once, and SIGUSR2, which asks every rank where it is (train/flight). A run also goes on where
// nobody reads what it prints any more: Ctrl-C ends "| tee log" before the run has left its checkpoint. Its
// result is printed after the life of this object, so that this stays.
#pragma once

#include <map>
#include <vector>

#include <signal.h>

namespace penstock::cli {

class StopSignals {
 public:
  // Handles `signals`, which request an end, and SIGUSR2 during the life of this object; one object at a
  // time. Before and after it the user's signals are held (cli/held_signals.h).
  explicit StopSignals(const std::vector<int>& signals);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static bool asked();  // from any thread

 private:
  std::map<int, struct sigaction> before_;
};

}  // namespace penstock::cli
