// SPDX-License-Identifier: Apache-2.0
// Can the exchanges of a program be carried out? Both devices run the named actions in one slot, in which all
// devices run the same kind of work; what moves is of earlier slices alone, the halves of an action in one
// row from the oldest that it reads (exchange.h).
//
// Exchange adds no deadlock, not even between devices that attend for each other: an owner waits for its
// partners alone, and a device that waits, for whatever reason, serves.
#pragma once

#include "schedule/check/findings.h"
#include "schedule/check/ops.h"

namespace penstock::schedule {

void find_bad_exchange(const OpTable& table, Findings& findings);

}  // namespace penstock::schedule
