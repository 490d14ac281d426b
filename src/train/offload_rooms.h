// SPDX-License-Identifier: Apache-2.0
// Where the records that a device offloads lie meanwhile. As the program's order is fixed, every copy's place
// is known before the run, and so is the room needed in all.
#pragma once

#include <vector>

#include "base/units.h"
#include "schedule/program.h"

namespace penstock::train {

struct OffloadRooms {
  Bytes size = 0;             // of the whole place
  std::vector<Bytes> begins;  // [op]: of each OFFLOAD and of its RELOAD; 0 for other ops
};

// A record has its room from its OFFLOAD until the first compute op that waits for its RELOAD; then another
// may have it. First fit, in multiples of 4 KiB.
OffloadRooms find_rooms(const schedule::DeviceProgram& list);

}  // namespace penstock::train
