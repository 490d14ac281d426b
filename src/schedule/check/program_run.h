// SPDX-License-Identifier: Apache-2.0
// Runs a program without times, as strictly as any transport may: a message arrives when its send and its
// receive have both started, a collective ends when all its members are at it.
#pragma once

#include "schedule/check/collectives.h"
#include "schedule/check/findings.h"
#include "schedule/check/messages.h"
#include "schedule/check/ops.h"

namespace penstock::schedule {

// One finding for each op of one circle of ops that wait for each other. Every transfer must have its
// partner, and every collective one of each member.
void find_program_deadlock(const OpTable& table, const Partners& partners, const Meetings& meetings,
                           Findings& findings);

}  // namespace penstock::schedule
