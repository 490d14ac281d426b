// SPDX-License-Identifier: Apache-2.0
// Ranks started by mpirun or srun.
//
// A failing rank must be able to say why before the launcher kills everybody. So abort(reason) tells all
// ranks, who learn of it in their next wait or call (PeerFailure) and call abort themselves once they have
// printed their line; when all have, or after 4 seconds, the process of the first failure ends the job by
// MPI_Abort with exit code 3, and everyone else's abort waits for that. run_mpi does all this; a main that
// uses make_mpi has to do the same:
//
//   auto world = make_mpi();              // outside the try: its destructor ends the job when an exception
//   passes it try {
//     work(*world);
//     world->barrier();                   // until here a rank can be told of another's failure
//   } catch (const std::exception& failure) {
//     print(world->rank(), failure);      // says "rank 2 failed: ..." where this is a PeerFailure
//     world->abort(failure.what());       // does not return
//   }
#pragma once

#include <functional>
#include <memory>

#include "comm/communicator.h"
#include "comm/ranks.h"

namespace penstock::comm {

// This process was started by a launcher as one of several ranks (or as the only one), so MPI should be used.
// Reads the environment only.
bool launched_by_mpi();

// This process's rank and the number of ranks as the launcher gives them in the environment, to know before
// MPI is initialised; 0 and 1 without a launcher.
int launched_rank();
int launched_ranks();

// Initialises MPI (thread level FUNNELED) on the calling thread and gives the world. MPI is finalised when
// the returned communicator is destroyed, its sub-groups before it; the job is aborted instead (exit code 3)
// when a failure is known or an exception is unwinding. At most once in a process. Errors of MPI are
// RunErrors with MPI's text.
std::unique_ptr<Communicator> make_mpi();

// Runs body on the world. When it throws, reports and ends all ranks as described above, and never returns;
// mpirun exits with 3, or with 2 when the first failure is an InputError.
void run_mpi(const std::function<void(Communicator&)>& body, const FailureReport& report);

// The machine-local size of the world, to share cores. 1 without MPI. Before make_mpi from the environment,
// as far as the launcher tells.
int local_ranks();

}  // namespace penstock::comm
