// SPDX-License-Identifier: Apache-2.0
// Processes that a command leaves running. They become children of this process, which ends them.
#pragma once

#include <set>

#include "base/units.h"

namespace penstock::cli {

// Makes orphans of commands that are started from now on children of this process. Returns its children so
// far, including ones that it did not start: those from before exec(), and orphans if it is process 1 of a
// container.
std::set<int> adopt_orphans();

// Gives the orphans `grace` to end, then kills them, so that none holds files of the next command. `others`:
// children from before the command.
void end_orphans(std::set<int> others, Seconds grace);

}  // namespace penstock::cli
