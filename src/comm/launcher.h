// SPDX-License-Identifier: Apache-2.0
// Where this process runs: its host, and what launchers (mpirun of Open MPI and MPICH, srun) pass through the
// environment.
#pragma once

#include <string>

namespace penstock::comm {

// Ranks on this machine, or 1 if unknown.
int launched_local_ranks();

std::string host_name();  // of this process; "host" where it has none

}  // namespace penstock::comm
