// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "cli/tell.h"
#include "comm/launcher.h"
#include "comm/mpi.h"

namespace penstock::cli {

void tell_once(const std::string& text) try {
  if (!comm::launched_by_mpi()) return tell(text);
  comm::run_mpi(
      [&](comm::Communicator& world) {
        if (world.rank() == 0) tell(text);
      },
      [](int, const std::exception& failure) { tell(failure.what()); });
} catch (const std::exception&) {  // no MPI: every rank reports, instead of none
  tell(text);
}

}  // namespace penstock::cli
