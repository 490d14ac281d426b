// SPDX-License-Identifier: Apache-2.0
// What a launcher does when a rank dies: it sends SIGTERM to the others, and kills them a second later. A
// rank that is told so can still say why. Open MPI's (4.1) mpirun does not sleep the second out: the end of
// any rank wakes it, and it kills the rest.
#pragma once

#include <optional>
#include <vector>

#include <signal.h>

#include "base/units.h"

namespace penstock::comm {

inline constexpr Seconds last_words = 0.6;  // of that second: until all have said why they end

// Handles SIGTERM during the life of this object; one object at a time. A second one ends the process at
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
  int rank = 0;  // of the world
  pid_t process = 0;
};

// The first whose process is gone.
std::optional<int> gone(const std::vector<LocalRank>& ranks);

}  // namespace penstock::comm
