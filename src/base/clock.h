// SPDX-License-Identifier: Apache-2.0
// Clocks. Only differences between readings are meaningful for the first two.
#pragma once

#include "base/units.h"

namespace penstock {

Seconds steady_seconds();                    // monotonic; the same clock on all threads
Seconds processor_seconds_of_this_thread();  // CPU time of the calling thread
Seconds wall_seconds();                      // since 1970; may jump

}  // namespace penstock
