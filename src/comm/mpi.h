// SPDX-License-Identifier: Apache-2.0
// Ranks started by mpirun or srun.
//
// A failing rank must print its reason before the launcher kills all processes. So abort(reason) notifies all
// ranks; they receive it in their next wait or call (PeerFailure) and call abort themselves after printing
// their line. When all have, or after 4 seconds, the process that failed first ends the job by MPI_Abort with
// exit code 3; the other ranks' abort waits for that. run_mpi does all this; a main that uses make_mpi must
// do the same:
//
//   auto world = make_mpi();              // outside the try: its destructor ends the job on an exception
//   try {
//     work(*world);
//     world->barrier();                   // up to here a rank can receive another's failure
//   } catch (const std::exception& failure) {
//     print(world->rank(), failure);      // prints "rank 2 failed: ..." for a PeerFailure
//     world->abort(failure.what());       // does not return
//   }
#pragma once

#include <functional>
#include <memory>

#include "base/units.h"
#include "comm/communicator.h"
#include "comm/ranks.h"

namespace penstock::comm {

inline constexpr Seconds kUsualStartLimit = 120;

// Initialises MPI (thread level FUNNELED) on the calling thread and returns the world. Destroying it, after
// its sub-groups, finalises MPI; aborts the job instead (exit code 3) after a failure or while an exception
// is unwinding. At most once per process. MPI errors are RunErrors with MPI's text.
std::unique_ptr<Communicator> make_mpi();

// Runs body on the world. If it throws, reports and ends all ranks as described above, and does not return;
// mpirun exits with 3, or with 2 when the first failure is an InputError. `start_limit`: seconds for MPI to
// start, and again to end, with all ranks; a rank that waits longer reports that and exits with 3. 0: no
// limit.
void run_mpi(const std::function<void(Communicator&)>& body, const FailureReport& report,
             Seconds start_limit = kUsualStartLimit);

// Number of the world's ranks on this machine, for splitting its cores. 1 without MPI. Before make_mpi, read
// from the environment if the launcher sets it.
int local_ranks();

// Index of a rank on its machine. MPI ranks are processes; other ranks are threads of this process.
int place_on_machine(int rank);

}  // namespace penstock::comm
