// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/units.h"

namespace penstock::train {

// What layers exchange along one axis of the mesh, tensor or context, in one step.
struct AxisTraffic {
  Bytes sent = 0;      // by all ranks
  Seconds waited = 0;  // for it, by the rank that waited longest: exposed communication
};

}  // namespace penstock::train
