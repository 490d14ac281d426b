// SPDX-License-Identifier: Apache-2.0
#include "cli/automatic_threads.h"

#include <algorithm>

#include "comm/launcher.h"
#include "train/machine.h"

namespace penstock::cli {

int automatic_threads(int ranks_here) {
  const int usable = train::this_host().cores;
  return comm::bound_by_launcher() ? usable : std::max(1, usable / std::max(1, ranks_here));
}

}  // namespace penstock::cli
