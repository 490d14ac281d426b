// SPDX-License-Identifier: Apache-2.0
// Handles the SIGTERM that a launcher sends to the other ranks when one dies; it kills them a second later. A
// rank that gets the signal can still report why it ends. Open MPI's (4.1) mpirun does not always wait for
// the whole second: when any rank ends, it kills the rest.
#pragma once

#include <optional>
#include <vector>

#include <signal.h>

#include "base/units.h"

namespace penstock::comm {

inline constexpr Seconds kLastWords = 0.6;  // of that second, for all ranks to report why they end

// Handles SIGTERM during the life of this object; one object at a time. A second SIGTERM ends the process at
// once.
class EndSignal {
 public:
  EndSignal();
  ~EndSignal();
  EndSignal(const EndSignal&) = delete;
  EndSignal& operator=(const EndSignal&) = delete;

  bool received() const;

 private:
  struct sigaction before_ {};
};

// A rank whose process is on this machine.
struct LocalRank {
  int rank = 0;  // world rank
  pid_t process = 0;
};

// Returns the first rank whose process is gone.
std::optional<int> gone(const std::vector<LocalRank>& ranks);

}  // namespace penstock::comm
