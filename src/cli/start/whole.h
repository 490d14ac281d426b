// SPDX-License-Identifier: Apache-2.0
// `penstock` becomes `penstock-compute` where a command needs LibTorch or MPI, and begins the command again.
#pragma once

namespace penstock::cli {

// For commands that must not begin again once they have started something: from here on this process is the
// whole program.
void become_whole_now();

}  // namespace penstock::cli
