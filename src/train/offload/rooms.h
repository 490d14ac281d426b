// SPDX-License-Identifier: Apache-2.0
// Places of a device's offloaded records in the store. As the program's order is fixed, every copy's place
// and the total size are known before the run.
#pragma once

#include <vector>

#include "base/units.h"
#include "schedule/program.h"

namespace penstock::train {

struct OffloadRooms {
  Bytes size = 0;             // of the store
  std::vector<Bytes> begins;  // [op]: of each OFFLOAD and of its RELOAD; 0 for other ops
};

// A record occupies its room from its OFFLOAD until the first compute op that waits for its RELOAD. First
// fit, in multiples of 4 KiB.
OffloadRooms find_rooms(const schedule::DeviceProgram& list);

}  // namespace penstock::train
