// SPDX-License-Identifier: Apache-2.0
// The resident set of this process, as the kernel counts it.
#pragma once

#include "base/units.h"

namespace penstock::train {

struct Resident {
  Bytes now = 0;
  Bytes peak = 0;  // since the process began
};

// Zeros where the system does not tell.
Resident resident_memory();

}  // namespace penstock::train
