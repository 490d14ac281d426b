// SPDX-License-Identifier: Apache-2.0
// Signals that ask a run to end well after the step under way; a second one ends the process at once.
#pragma once

#include <map>
#include <vector>

#include <signal.h>

namespace penstock::cli {

class StopSignals {
 public:
  // Takes the signals over for the life of this object; one object at a time.
  explicit StopSignals(const std::vector<int>& signals);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static bool asked();  // from any thread

 private:
  std::map<int, struct sigaction> before_;
};

}  // namespace penstock::cli
