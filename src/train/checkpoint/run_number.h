// SPDX-License-Identifier: Apache-2.0
// The run number, a label on what a run keeps outside its directory. A directory's path alone does not tell a
// run from an earlier or later one there.
#pragma once

#include <string>

#include "comm/groups.h"

namespace penstock::train {

std::string drawn_number();  // 16 random hexadecimal digits

// Number of the run in `output_directory`, from its file there (files/run_files.h) as rank 0 sees it; empty
// if the run has none. Collective.
std::string run_number(const std::string& output_directory, comm::World world);

// The same, but draws and writes a number if the run has none. Throws RunError naming the file. Collective.
std::string ensure_run_number(const std::string& output_directory, comm::World world);

// Removes the run's number: nothing anywhere that bears it belongs to the run any more. Rank 0 only.
void forget_run_number(const std::string& output_directory);

}  // namespace penstock::train
