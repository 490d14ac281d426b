// SPDX-License-Identifier: Apache-2.0
// What choices by simulated seconds simulate.
#pragma once

#include "run/run.h"

namespace penstock::run {

// Of the time of what is simpler or keeps less: what gains less is within the costs' error.
inline constexpr double kWorthwhile = 0.99;

// The same run with at most eight micro-batches, since further ones repeat the same slots.
Run shortened(const Run& run);

// A step by the analytic model at run.machine.hardware.
Seconds simulated_seconds(const Run& run);

}  // namespace penstock::run
