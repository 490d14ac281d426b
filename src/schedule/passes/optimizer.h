// SPDX-License-Identifier: Apache-2.0
// Adds the optimizer step.
#pragma once

#include "schedule/program.h"

namespace penstock::schedule {

// Law: STEP is the last op of every device and waits for the last op of the collective lane, hence for all
// collectives; nothing else changes.
Program add_optimizer_step(Program program);

}  // namespace penstock::schedule
