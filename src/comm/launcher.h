// SPDX-License-Identifier: Apache-2.0
// Where this process runs: its host, and the environment variables of launchers (mpirun of Open MPI and
// MPICH, srun).
#pragma once

#include <string>

namespace penstock::comm {

// Whether a launcher started this process as a rank, so that MPI should be used. Reads only the environment.
bool launched_by_mpi();

// This process's rank and the number of ranks from the launcher's environment, available before MPI is
// initialised; 0 and 1 without a launcher.
int launched_rank();
int launched_ranks();

// Ranks on this machine, or 1 if unknown.
int launched_local_ranks();

// This process's index among its launcher's ranks on this machine; its rank if the launcher does not set it.
int launched_local_rank();

// Number of processors that a process (0: this one) may use; 0 if unknown.
int usable_processors(int process = 0);

// Number of processors on this host for all ranks of this rank's launcher together; without a launcher, for
// this process.
int usable_by_launcher();

// Number of processors for each of `ranks_here` ranks on this host: the launcher's processors split evenly,
// but at most those that this rank is bound to, and at least 1. In a job that has a part of its host, the
// launcher has that part. Ranks bound to the same processors, a socket for example, share them.
int processors_of_rank(int ranks_here);

// Call before MPI is initialised: if all ranks are on this host, they send through its memory. By default
// Open MPI first looks for networks for 0.2 s, and makes the same choice if it finds none. The user's choice
// takes precedence.
void prefer_shared_memory();

std::string host_name();  // "host" if unknown
std::string host_id();    // the name and a number of the host's start, since hosts may share a name

}  // namespace penstock::comm
