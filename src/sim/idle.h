// SPDX-License-Identifier: Apache-2.0
// What a device's compute lane does all the time: busy, or idle and why.
#pragma once

#include <vector>

#include "schedule/timeline.h"
#include "sim/costs/costs.h"

namespace penstock::sim {

// Idle time by cause. At a moment inside the device's span (from its first action to the end of its last;
// actions are F, B, I, W), look at what the next op still waits for:
struct IdleCauses {
  Seconds ramp = 0;        // outside the span
  Seconds transfer = 0;    // every producer is done, and bytes are in flight
  Seconds copy = 0;        // only a copy is missing: a reload, or the offload that makes room
  Seconds imbalance = 0;   // of the rest, what would vanish if all actions of a kind took their mean
  Seconds dependency = 0;  // the rest: a producer elsewhere is not done

  Seconds total() const { return ramp + transfer + copy + imbalance + dependency; }
};

struct DeviceTime {
  Seconds busy = 0;  // as schedule::busy_seconds()
  Seconds first_start = 0;
  Seconds last_end = 0;  // of actions
  IdleCauses idle;       // busy + idle.total() is the makespan

  Seconds span() const { return last_end - first_start; }
  Seconds idle_in_span() const { return idle.transfer + idle.copy + idle.imbalance + idle.dependency; }
};

// Simulated or measured, of a legal program; imbalance is left in dependency.
std::vector<DeviceTime> account_time(const schedule::Program& program, const schedule::Timeline& timeline);

// Moves from dependency to imbalance what each device would wait less if every F of the program took the mean
// time of all F, and so on: the difference to a second simulation with mean times, between 0 and the whole of
// dependency.
void split_imbalance(std::vector<DeviceTime>& devices, const schedule::Program& program,
                     const schedule::Timeline& timeline, const Costs& costs);

}  // namespace penstock::sim
