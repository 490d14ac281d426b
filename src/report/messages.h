// SPDX-License-Identifier: Apache-2.0
// Which receive gets what a send sends, and whether a timeline is one of a program.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/program.h"
#include "schedule/timeline.h"

namespace penstock::report {

struct Message {
  std::int32_t source = 0;
  std::int32_t destination = 0;
  std::uint32_t send = 0;     // index into the source's ops
  std::uint32_t receive = 0;  // index into the destination's ops
};

// Sends and receives of one (source, destination, channel) matched in order, by source and then by send; what
// is left without its other half is left out.
std::vector<Message> match_messages(const schedule::Program& program);

// The timeline has the program's devices and one event per op, in the order of the ops (PENSTOCK_CHECK).
void check_timeline(const schedule::Program& program, const schedule::Timeline& timeline);

}  // namespace penstock::report
