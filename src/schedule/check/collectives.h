// SPDX-License-Identifier: Apache-2.0
// The rules about collectives: the members of a group issue the same ones in the same order, and what they
// move is complete, or present, when it is used.
#pragma once

#include <vector>

#include "schedule/check/findings.h"
#include "schedule/check/ops.h"

namespace penstock::schedule {

struct Meetings {
  std::vector<std::vector<Cell>> cells;  // [meeting] one of each member, where there are several
  std::vector<Cell> of;                  // [cell] its meeting; kNoCell for ops that meet nobody
};

// Adds what does not match (Unmatched), one finding for each pair of devices: the k-th collectives of the
// same members (meeting.h) are of one kind and size, and LOSS of one slice.
Meetings match_collectives(const OpTable& table, Findings& findings);

// On one device: a REDUCE_GRAD waits for the unit's last contribution (passes/shard.h), is the only one of
// its unit and group, and over the replica group there is one for every unit or none; on a device that
// gathers, no op uses weights before a GATHER_WEIGHTS has brought them, nor after a RELEASE_WEIGHTS; where
// weights are released, at most two stages are gathered at a time; STEP waits for all collectives. Duplicate,
// Home, Missing, Order, Residence.
void find_bad_collectives(const OpTable& table, Findings& findings);

}  // namespace penstock::schedule
