// SPDX-License-Identifier: Apache-2.0
// Ranks started by mpirun or srun.
#pragma once

#include <memory>

#include "comm/communicator.h"

namespace penstock::comm {

// This process was started by a launcher as one of several ranks (or as the only one), so MPI should be used.
// Reads the environment only.
bool launched_by_mpi();

// Initialises MPI (thread level FUNNELED) on the calling thread and gives the world. MPI is finalised when the
// returned communicator is destroyed. At most once in a process.
std::unique_ptr<Communicator> make_mpi();

// The machine-local size of the world, to share cores. 1 without MPI.
int local_ranks();

}  // namespace penstock::comm
