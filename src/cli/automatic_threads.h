// SPDX-License-Identifier: Apache-2.0
// How many threads a rank has where train.threads = 0 leaves it open.
#pragma once

namespace penstock::cli {

// Cores of the affinity mask when the launcher bound this rank to some, else a fair share of the host's for
// so many ranks.
int automatic_threads(int ranks_here);

}  // namespace penstock::cli
