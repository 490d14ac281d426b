// SPDX-License-Identifier: Apache-2.0
#include "cli/automatic_threads.h"

#include <algorithm>
#include <thread>

#include "comm/launcher.h"
#include "train/machine.h"

namespace penstock::cli {

int automatic_threads(int ranks_here) {
  const int usable = train::this_host().cores;
  const bool bound = usable < static_cast<int>(std::thread::hardware_concurrency());
  return bound && comm::launched_by_mpi() ? usable : std::max(1, usable / std::max(1, ranks_here));
}

}  // namespace penstock::cli
