// SPDX-License-Identifier: Apache-2.0
// The number of threads per rank for train.threads = 0.
#pragma once

namespace penstock::cli {

// Processors per rank when `ranks_here` ranks share this host (comm/launcher.h).
int automatic_threads(int ranks_here);

}  // namespace penstock::cli
