// SPDX-License-Identifier: Apache-2.0
// The rules about the order on one device.
#pragma once

#include "schedule/check/findings.h"
#include "schedule/check/table.h"

namespace penstock::schedule {

// No action before one of its own device that it needs.
void find_misordered(const UnitTable& table, Findings& findings);

// An overlapped pair is one forward and one backward, and neither needs the other.
void find_bad_overlaps(const UnitTable& table, Findings& findings);

// A REDUCE_GRAD comes once, after all backwards of its stage on the device. With `every_stage`, when the
// schedule has any, then every stage on every device has one.
void find_bad_reductions(const UnitTable& table, bool every_stage, Findings& findings);

}  // namespace penstock::schedule
