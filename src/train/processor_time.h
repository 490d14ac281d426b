// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include "base/units.h"

namespace penstock::train {

inline Seconds processor_time_of_this_thread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<Seconds>(time.tv_sec) + 1e-9 * static_cast<Seconds>(time.tv_nsec);
}

}  // namespace penstock::train
