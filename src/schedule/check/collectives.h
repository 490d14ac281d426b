// SPDX-License-Identifier: Apache-2.0
// The rules about collectives: the members of a group issue the same ones in the same order, gradients are
// complete before they are reduced, and weights are present when they are used.
#pragma once

#include <vector>

#include "schedule/check/findings.h"
#include "schedule/check/ops.h"

namespace penstock::schedule {

struct Meetings {
  std::vector<std::vector<Cell>> cells;  // [meeting] one cell per member; only meetings of several members
  std::vector<Cell> of;                  // [cell] index of its meeting; kNoCell for other ops
};

// Rule: the k-th collectives of the same members (meeting.h) have the same kind and size, and LOSS the same
// slice. Adds one finding (Unmatched) per pair of devices.
Meetings match_collectives(const OpTable& table, Findings& findings);

// Rules on one device: a REDUCE_GRAD waits for the unit's last contribution (passes/shard.h) and is the only
// one of its unit and group; over the replica group every unit has one, or no unit has; on a device that
// gathers, no op uses weights before their GATHER_WEIGHTS is done, nor after their RELEASE_WEIGHTS; if
// weights are released, at most two stages are gathered at a time; STEP waits for all collectives. Adds
// Duplicate, Home, Missing, Order, Residence.
void find_bad_collectives(const OpTable& table, Findings& findings);

}  // namespace penstock::schedule
