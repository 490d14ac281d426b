// SPDX-License-Identifier: Apache-2.0
// Adds the optimizer's step.
#pragma once

#include "schedule/program.h"

namespace penstock::schedule {

// Law: STEP is the last op of every device and waits for the last collective of its lane, hence for all;
// nothing else changes.
Program add_optimizer_step(Program program);

}  // namespace penstock::schedule
