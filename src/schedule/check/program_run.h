// SPDX-License-Identifier: Apache-2.0
// Runs a program without times, under the strictest transport semantics: a message arrives when its send and
// its receive have both started (rendezvous); a collective ends when all its members have started it.
#pragma once

#include "schedule/check/collectives.h"
#include "schedule/check/findings.h"
#include "schedule/check/messages.h"
#include "schedule/check/ops.h"

namespace penstock::schedule {

// Adds one finding per op of one cycle of ops that wait for each other. Every transfer must have its partner
// and every collective all its members.
void find_program_deadlock(const OpTable& table, const Partners& partners, const Meetings& meetings,
                           Findings& findings);

}  // namespace penstock::schedule
