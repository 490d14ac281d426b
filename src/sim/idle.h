// SPDX-License-Identifier: Apache-2.0
// Accounts for the time of a device's compute lane: busy, or idle by cause.
#pragma once

#include <vector>

#include "schedule/timeline.h"
#include "sim/costs/costs.h"

namespace penstock::sim {

// Idle time by cause. Inside the device's span (from the start of its first to the end of its last action; F,
// B, I or W), the cause is what the next op still waits for:
struct IdleCauses {
  Seconds ramp = 0;        // outside the span
  Seconds transfer = 0;    // all producers are done, bytes are in flight
  Seconds copy = 0;        // only a copy is missing: a reload, or the offload that makes room
  Seconds imbalance = 0;   // the part of the rest that vanishes if all actions of a kind take their mean time
  Seconds dependency = 0;  // the rest: a producer on another device is not done

  Seconds total() const { return ramp + transfer + copy + imbalance + dependency; }
};

struct DeviceTime {
  Seconds busy = 0;  // as in schedule::busy_seconds()
  Seconds first_start = 0;
  Seconds last_end = 0;  // of actions
  IdleCauses idle;       // busy + idle.total() == makespan

  Seconds span() const { return last_end - first_start; }
  Seconds idle_in_span() const { return idle.transfer + idle.copy + idle.imbalance + idle.dependency; }
};

// For a simulated or measured timeline of a legal program. Imbalance is counted as dependency.
std::vector<DeviceTime> account_time(const schedule::Program& program, const schedule::Timeline& timeline);

// Moves idle time from dependency to imbalance: for each device the difference to a second simulation, in
// which every F takes the mean time of all F, and so on, clamped to [0, dependency].
void split_imbalance(std::vector<DeviceTime>& devices, const schedule::Program& program,
                     const schedule::Timeline& timeline, const Costs& costs);

}  // namespace penstock::sim
