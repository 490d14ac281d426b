// SPDX-License-Identifier: Apache-2.0
// The rules about what runs at all: every F and B (or I and W) exactly once, on one device for each
// micro-batch.
#pragma once

#include <optional>

#include "schedule/check/findings.h"
#include "schedule/check/table.h"

namespace penstock::schedule {

// Adds what breaks them (Range, Duplicate, Mixed, Home, Missing) and returns the table that the other rules
// need. No table when there are far too few actions for the numbers they name, so that it would not be
// justified; findings are not empty then. Of duplicates on two devices the table keeps the one beside the
// unit's other actions.
std::optional<UnitTable> tabulate(const Schedule& schedule, Findings& findings);

}  // namespace penstock::schedule
