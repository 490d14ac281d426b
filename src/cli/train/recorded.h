// SPDX-License-Identifier: Apache-2.0
// A rank's run with its flight recorder, and the words for its failure.
#pragma once

#include <exception>
#include <string>

#include "train/run.h"

namespace penstock::cli {

// train::run(). A rank that has waited too long adds to its failure who holds up the others.
train::RunOutcome run_recorded(const run::Run& run, const train::TokenData& data, comm::Communicator& world,
                               const train::RunDirectory* directory, const train::RunObserver& observer,
                               train::RunControl control);

// Tells that this rank has failed. `place`: in the mesh; empty before it is known.
void report_failure(int rank, const std::exception& failure, const std::string& place);

}  // namespace penstock::cli
