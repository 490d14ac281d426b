// SPDX-License-Identifier: Apache-2.0
// Signals that request a clean end after the current step; a second one ends the process at once.
#pragma once

#include <map>
#include <vector>

#include <signal.h>

namespace penstock::cli {

class StopSignals {
 public:
  // Handles the signals during the life of this object; one object at a time.
  explicit StopSignals(const std::vector<int>& signals);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static bool asked();  // from any thread

 private:
  std::map<int, struct sigaction> before_;
};

}  // namespace penstock::cli
