// SPDX-License-Identifier: Apache-2.0
// Runs a rank with its flight recorder, and formats its failure.
#pragma once

#include <exception>
#include <string>

#include "comm/rank_names.h"
#include "train/run.h"

namespace penstock::cli {

// train::run() with a flight recorder. A rank that waited too long adds to its failure who blocks the others.
train::RunOutcome run_recorded(const run::Run& run, const train::TokenData& data, comm::Communicator& world,
                               const comm::RankNames& names, const train::RunDirectory* directory,
                               const train::RunObserver& observer, train::RunControl control);

// "rank 1: <the failure's first line> (p1, host n3)". `names`: one per rank; empty before the mesh is known.
std::string failure_line(int rank, const std::exception& failure, const comm::RankNames& names);

}  // namespace penstock::cli
