// SPDX-License-Identifier: Apache-2.0
// The rules about the order on one device.
#pragma once

#include "schedule/check/findings.h"
#include "schedule/check/table.h"

namespace penstock::schedule {

// Rule: no action comes before a dependency on its own device.
void find_misordered(const UnitTable& table, Findings& findings);

// Rule: an overlapped pair is one forward and one backward, and neither depends on the other.
void find_bad_overlaps(const UnitTable& table, Findings& findings);

// Rule: a REDUCE_GRAD comes once, after all backwards of its stage on the device. With `every_stage`, a
// schedule that has any has one for every stage on every device.
void find_bad_reductions(const UnitTable& table, bool every_stage, Findings& findings);

}  // namespace penstock::schedule
