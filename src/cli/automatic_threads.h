// SPDX-License-Identifier: Apache-2.0
// The number of threads per rank for train.threads = 0.
#pragma once

namespace penstock::cli {

// Cores of the affinity mask when the launcher bound this rank, else this rank's share of the host's cores.
int automatic_threads(int ranks_here);

}  // namespace penstock::cli
