// SPDX-License-Identifier: Apache-2.0
// How many slice-chunks a device holds at once. A question of order alone; no times needed.
#pragma once

#include "schedule/program.h"

namespace penstock::sim {

struct InFlight {
  int peak = 0;              // whose F has run and whose B or W has not
  int peak_until_input = 0;  // whose F has run and whose B or I has not
};

InFlight count_in_flight(const schedule::DeviceProgram& device);

}  // namespace penstock::sim
