// SPDX-License-Identifier: Apache-2.0
// Which send a receive gets its message from.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/timeline.h"

namespace penstock::sim {

// For each device, the start of the matching send of each of its receives, in issue order: from then on the
// bytes are in flight. Works on simulated and on measured timelines of legal programs.
std::vector<std::vector<Seconds>> departures(const schedule::Program& program,
                                             const schedule::Timeline& timeline);

}  // namespace penstock::sim
