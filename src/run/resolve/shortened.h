// SPDX-License-Identifier: Apache-2.0
// The simulations behind choices by simulated time.
#pragma once

#include "run/run.h"

namespace penstock::run {

// Largest fraction of the simpler setting's time that is a gain: less is within the costs' error.
inline constexpr double kWorthwhile = 0.99;

// The run with at most eight micro-batches, since more repeat the same slots; whole with schedule.file.
Run shortened(const Run& run);

// Time of a step by the analytic model at run.machine.hardware.
Seconds simulated_seconds(const Run& run);

}  // namespace penstock::run
