// SPDX-License-Identifier: Apache-2.0
// The rule about waiting: no op of a program may start before what it uses is known to be there.
#pragma once

#include "schedule/check/findings.h"
#include "schedule/check/ops.h"

namespace penstock::schedule {

// F, B and I have received what comes from other devices, sends and offloads have something to send, reloads
// come after their offload and before the backward, and transfers go between the devices that run their
// stages. Missing, Order, Residence, Unmatched.
void find_unready(const OpTable& table, Findings& findings);

}  // namespace penstock::schedule
