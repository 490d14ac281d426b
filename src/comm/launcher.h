// SPDX-License-Identifier: Apache-2.0
// Where this process runs: its host, and what launchers (mpirun of Open MPI and MPICH, srun) pass through the
// environment.
#pragma once

#include <string>

namespace penstock::comm {

// Whether a launcher started this process as one of several ranks (or the only one), so that MPI should be
// used. Reads only the environment.
bool launched_by_mpi();

// This process's rank and the number of ranks from the launcher's environment, available before MPI is
// initialised; 0 and 1 without a launcher.
int launched_rank();
int launched_ranks();

// Ranks on this machine, or 1 if unknown.
int launched_local_ranks();

// This process's number among its launcher's ranks on this machine; its rank where the launcher does not
// tell.
int launched_local_rank();

// Processors that a process may use, 0: this one; 0 where that cannot be asked.
int usable_processors(int process = 0);

// Processors that this rank's launcher may use here, and so all its ranks together; without a launcher those
// of this process.
int usable_by_launcher();

// Processors for each of so many ranks of this host: those that the launcher may use itself, shared out, but
// none that this rank is not bound to. In a job that has a part of its host, the launcher has that part.
// Ranks that are bound together, as to a socket, share it.
int processors_of_rank(int ranks_here);

// Before MPI is initialised: ranks of one host send through its memory. Otherwise Open MPI looks for networks
// first, for 0.2 s, and comes to the same choice where there are none. A choice of the user's stays.
void prefer_shared_memory();

std::string host_name();  // of this process; "host" where it has none

}  // namespace penstock::comm
