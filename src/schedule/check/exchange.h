// SPDX-License-Identifier: Apache-2.0
// The rules about exchanges. The owner and its partner run the named actions in the same slot, and in this
// slot all devices run the same kind of work. Only keys of earlier slices move, and the parts of one action
// follow each other without a gap (exchange.h). The first half is not checked: it depends on the documents
// that the action reads, which a program does not contain. So a missing first part is not found.
//
// Exchange adds no deadlock, not even between devices that serve each other: an owner waits only for its
// partners, and a device serves during every wait.
#pragma once

#include "schedule/check/findings.h"
#include "schedule/check/ops.h"

namespace penstock::schedule {

void find_bad_exchange(const OpTable& table, Findings& findings);

}  // namespace penstock::schedule
