// SPDX-License-Identifier: Apache-2.0
// What launchers (mpirun of Open MPI and MPICH, srun) tell their processes through the environment.
#pragma once

namespace penstock::comm {

// Ranks on this machine, or 1 when the launcher does not say.
int launched_local_ranks();

}  // namespace penstock::comm
