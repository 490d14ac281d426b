// SPDX-License-Identifier: Apache-2.0
// The number of a run, which what it keeps outside of its directory bears: a directory's path alone does not
// tell a run from another that was, or will be, in its place.
#pragma once

#include <string>

#include "comm/groups.h"

namespace penstock::train {

std::string drawn_number();  // 16 hexadecimal digits, at random

// That of the run in `output_directory`, from its file there (files/run_files.h) as rank 0 sees it; empty
// where the run has none. Collective.
std::string run_number(const std::string& output_directory, comm::World world);

// The same, drawn and written where the run has none. Throws RunError naming the file. Collective.
std::string ensure_run_number(const std::string& output_directory, comm::World world);

// Nothing that bears it belongs to the run from then on, wherever it is. Of rank 0.
void forget_run_number(const std::string& output_directory);

}  // namespace penstock::train
