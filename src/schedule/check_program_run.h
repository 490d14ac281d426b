// SPDX-License-Identifier: Apache-2.0
// Runs a program without times, as strictly as any transport may: a message arrives when its send and its
// receive have both started, a reduction ends when both devices are at it.
#pragma once

#include "schedule/check_findings.h"
#include "schedule/check_messages.h"
#include "schedule/check_ops.h"

namespace penstock::schedule {

// One finding for each op of one circle of ops that wait for each other. Every transfer must have its
// partner.
void find_program_deadlock(const OpTable& table, const Partners& partners, Findings& findings);

}  // namespace penstock::schedule
