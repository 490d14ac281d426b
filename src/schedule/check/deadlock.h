// SPDX-License-Identifier: Apache-2.0
// The rule across devices: actions must not wait for each other in a cycle.
#pragma once

#include "schedule/check/findings.h"
#include "schedule/check/table.h"

namespace penstock::schedule {

// Adds one finding per device of one cycle.
void find_deadlock(const UnitTable& table, Findings& findings);

}  // namespace penstock::schedule
