// SPDX-License-Identifier: Apache-2.0
// The departure times of received messages.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/timeline.h"

namespace penstock::sim {

// For each device: the start of the matching send for each of its receives, in issue order. From then on the
// bytes are in flight. For simulated and measured timelines of legal programs.
std::vector<std::vector<Seconds>> departures(const schedule::Program& program,
                                             const schedule::Timeline& timeline);

}  // namespace penstock::sim
