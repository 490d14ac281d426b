// SPDX-License-Identifier: Apache-2.0
// Runs a program without times, as strictly as any transport may: a message arrives when its send and its
// receive have both started, a reduction ends when both devices are at it, a visit of the vocabulary when all
// are.
#pragma once

#include "schedule/check_findings.h"
#include "schedule/check_messages.h"
#include "schedule/check_ops.h"
#include "schedule/check_vocabulary.h"

namespace penstock::schedule {

// One finding for each op of one circle of ops that wait for each other. Every transfer must have its
// partner, and every visit its place on each device.
void find_program_deadlock(const OpTable& table, const Partners& partners, const Visits& visits,
                           Findings& findings);

}  // namespace penstock::schedule
