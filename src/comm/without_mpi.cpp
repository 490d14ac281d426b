// SPDX-License-Identifier: Apache-2.0
// Replaces mpi.cpp in builds without MPI (PENSTOCK_MPI=OFF), where ranks are threads.
#include "base/error.h"
#include "comm/launcher.h"
#include "comm/mpi.h"

namespace penstock::comm {
namespace {

[[noreturn]] void refuse() {
  throw InputError(
      "this build has no MPI: start ranks as threads of one process, with --ranks N and without mpirun");
}

}  // namespace

std::unique_ptr<Communicator> make_mpi() { refuse(); }

void run_mpi(const std::function<void(Communicator&)>&, const FailureReport&, Seconds) { refuse(); }

int local_ranks() { return launched_local_ranks(); }

int place_on_machine(int rank) { return rank; }

}  // namespace penstock::comm
