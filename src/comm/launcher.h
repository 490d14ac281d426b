// SPDX-License-Identifier: Apache-2.0
// Rank information that launchers (mpirun of Open MPI and MPICH, srun) pass through the environment.
#pragma once

namespace penstock::comm {

// Ranks on this machine, or 1 if unknown.
int launched_local_ranks();

}  // namespace penstock::comm
