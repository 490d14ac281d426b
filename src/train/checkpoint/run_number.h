// SPDX-License-Identifier: Apache-2.0
// The run number, a label on what a run keeps outside its directory. A directory's path alone does not tell a
// run from an earlier or later one there.
#pragma once

#include <string>

#include "comm/groups.h"

namespace penstock::train {

std::string number_file(const std::string& output_directory);  // its path

std::string drawn_number();  // 16 random hexadecimal digits

// Number of the run in `output_directory`, from its file there (files/run_files.h) as rank 0 sees it; empty
// if the run has none. Collective.
std::string run_number(const std::string& output_directory, comm::World world);

// Draws and writes a new number: what bears an earlier one does not belong to the run any more, wherever it
// is. Throws RunError naming the file. Collective.
std::string renew_run_number(const std::string& output_directory, comm::World world);

// Removes the run's number: nothing anywhere that bears it belongs to the run any more. Rank 0 only.
void forget_run_number(const std::string& output_directory);

}  // namespace penstock::train
