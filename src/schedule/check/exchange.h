// SPDX-License-Identifier: Apache-2.0
// Can the exchanges of a program be carried out? Both devices run the named actions in one slot, in which all
// devices run the same kind of work; no device both takes over and gives away attention in one slot; what
// moves is of earlier slices alone, from the oldest on, each half once.
//
// Exchange adds no deadlock: an owner waits for its partners alone, and a device
// that waits, for whatever reason, serves.
#pragma once

#include "schedule/check/findings.h"
#include "schedule/check/ops.h"

namespace penstock::schedule {

void find_bad_exchange(const OpTable& table, Findings& findings);

}  // namespace penstock::schedule
