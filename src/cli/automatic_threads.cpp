// SPDX-License-Identifier: Apache-2.0
#include "cli/automatic_threads.h"

#include "comm/launcher.h"

namespace penstock::cli {

int automatic_threads(int ranks_here) { return comm::processors_of_rank(ranks_here); }

}  // namespace penstock::cli
