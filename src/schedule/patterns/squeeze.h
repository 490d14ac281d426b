// SPDX-License-Identifier: Apache-2.0
// Squeezing repeated building blocks (block.h) within the memory that the repetition needs: a list scheduler
// in unit time.
#pragma once

#include <vector>

#include "schedule/patterns/block.h"
#include "schedule/request.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

// At every instant each device runs the next pass of its repeated block if its input is there, else a W. At
// most `limit` chunks of micro-batches are between F and W on a device; that must be enough for the blocks as
// they stand. A second try lets a pass overtake the one before it; the shorter schedule is returned.
Schedule squeeze(const Request& request, const std::vector<Block>& blocks, int limit);

}  // namespace penstock::schedule
