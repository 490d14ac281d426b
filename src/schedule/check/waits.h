// SPDX-License-Identifier: Apache-2.0
// The rule about waiting: no op of a program may start before its inputs are known to be there.
#pragma once

#include "schedule/check/findings.h"
#include "schedule/check/ops.h"

namespace penstock::schedule {

// F, B and I wait for their receives, sends and offloads wait for their producers, reloads come after their
// offload and before the backward, and transfers go between the devices that run their stages. Adds Missing,
// Order, Residence, Unmatched.
void find_unready(const OpTable& table, Findings& findings);

}  // namespace penstock::schedule
