// SPDX-License-Identifier: Apache-2.0
// Checks that the ranks' hosts fit together: one program, one run directory.
#pragma once

#include <string>

#include "cli/agree.h"
#include "comm/communicator.h"

namespace penstock::cli {

// Throws InputError on ranks that run another build of the program than rank 0. Collective.
void require_one_program(comm::Communicator& world);

// Refuses a directory that a rank's host does not share with rank 0's, or cannot write to: rank 0 writes a
// token that all ranks read, and the first rank of each other host writes one that rank 0 reads. Allows a
// file system seconds to show them. Collective.
Refusal refuse_other_directories(const std::string& directory, comm::Communicator& world);

// The same for a dry run, which writes nothing: refuses a directory in which a rank's host does not see the
// run file that rank 0 sees there, if any. Collective.
Refusal refuse_other_run_files(const std::string& directory, comm::Communicator& world);

}  // namespace penstock::cli
