// SPDX-License-Identifier: Apache-2.0
// Squeezes repeated building blocks (block.h) within the memory that the repetition needs: a list scheduler
// in unit time.
#pragma once

#include <vector>

#include "schedule/patterns/block.h"
#include "schedule/request.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

// In every time unit each device runs the next pass of its repeated block if its input is there, else a W. At
// most `limit` micro-batch chunks are between F and W on a device; this must be enough for the blocks in
// their own order. A second try lets a pass overtake the one before it. Returns the shorter schedule.
Schedule squeeze(const Request& request, const std::vector<Block>& blocks, int limit);

}  // namespace penstock::schedule
