// SPDX-License-Identifier: Apache-2.0
// Checks that a timeline belongs to a program.
#pragma once

#include "schedule/program.h"
#include "schedule/timeline.h"

namespace penstock::report {

// Requires the devices of the program and one event per op, in the order of the ops (PENSTOCK_CHECK).
void check_timeline(const schedule::Program& program, const schedule::Timeline& timeline);

}  // namespace penstock::report
