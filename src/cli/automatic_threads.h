// SPDX-License-Identifier: Apache-2.0
// The number of threads per rank for train.threads = 0.
#pragma once

namespace penstock::cli {

// The processors of each of so many ranks of this host (comm/launcher.h).
int automatic_threads(int ranks_here);

}  // namespace penstock::cli
