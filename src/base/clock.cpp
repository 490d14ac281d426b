// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <ctime>

namespace penstock {
namespace {

Seconds read_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<Seconds>(time.tv_sec) + 1e-9 * static_cast<Seconds>(time.tv_nsec);
}

}  // namespace

Seconds steady_seconds() { return read_clock(CLOCK_MONOTONIC); }
Seconds wall_seconds() { return read_clock(CLOCK_REALTIME); }
Seconds processor_seconds_of_this_thread() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace penstock
