// SPDX-License-Identifier: Apache-2.0
// The rules about completeness: every F and B (or I and W) runs exactly once, and a stage runs on one device
// for each micro-batch.
#pragma once

#include <optional>

#include "schedule/check/findings.h"
#include "schedule/check/table.h"

namespace penstock::schedule {

// Adds violations (Range, Duplicate, Mixed, Home, Missing) and returns the table that the other rules need.
// Returns no table, and adds findings, if there are far too few actions for the numbers they name: its size
// would not be justified. Of duplicates on two devices the table keeps the one on the device of the unit's
// other actions.
std::optional<UnitTable> tabulate(const Schedule& schedule, Findings& findings);

}  // namespace penstock::schedule
