// SPDX-License-Identifier: Apache-2.0
// Whether a timeline is one of a program.
#pragma once

#include "schedule/program.h"
#include "schedule/timeline.h"

namespace penstock::report {

// The timeline has the program's devices and one event per op, in the order of the ops (PENSTOCK_CHECK).
void check_timeline(const schedule::Program& program, const schedule::Timeline& timeline);

}  // namespace penstock::report
