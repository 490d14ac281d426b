// SPDX-License-Identifier: Apache-2.0
// Where a command needs LibTorch or MPI, `penstock-compute` replaces `penstock` and starts the command again.
#pragma once

namespace penstock::cli {

// For commands that must not be restarted once they have started something: makes this process the whole
// program now.
void become_whole_now();

}  // namespace penstock::cli
