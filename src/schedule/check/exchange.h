// SPDX-License-Identifier: Apache-2.0
// Can the exchanges of a program be carried out? The owner and its partner run the named actions in one slot,
// in which all devices run the same kind of work. Only keys of earlier slices move, and the parts of one
// action follow each other without a gap (exchange.h). Where they begin is not checked: it is the first half
// that the action's documents read, which a program does not say. So a first part that is missing is not
// found.
//
// Exchange adds no deadlock, not even between devices that attend for each other: an owner waits for its
// partners alone, and a device that waits, for whatever reason, serves.
#pragma once

#include "schedule/check/findings.h"
#include "schedule/check/ops.h"

namespace penstock::schedule {

void find_bad_exchange(const OpTable& table, Findings& findings);

}  // namespace penstock::schedule
