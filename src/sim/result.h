// SPDX-License-Identifier: Apache-2.0
// All that simulate tells: times, bubbles, idle time by cause, memory, the timeline.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/timeline.h"
#include "sim/costs/costs.h"
#include "sim/idle.h"
#include "sim/in_flight.h"
#include "sim/memory.h"
#include "sim/simulate.h"

namespace penstock::sim {

struct DeviceResult {
  DeviceTime time;
  InFlight in_flight;
  DeviceMemory memory;
};

struct Result {
  std::string name;  // the program's
  Seconds makespan = 0;
  // 1 - (sum of busy) / (p · makespan): the whole step, ramps included.
  double bubble_fraction = 0;
  // Idle inside a device's span over that span, mean over the devices: what the zero-bubble papers mean.
  double span_bubble_fraction = 0;
  std::vector<DeviceResult> devices;
  schedule::Timeline timeline;       // empty unless it is asked for
  std::optional<Deadlock> deadlock;  // then all else is empty
};

struct ResultOptions {
  bool imbalance = true;  // split it from dependency: a second simulation where times differ
  bool memory = true;
  bool timeline = true;
  bool memory_samples = false;  // bytes over time, not the peaks alone
};

// Simulates and accounts.
Result evaluate(const schedule::Program& program, const Costs& costs, const ResultOptions& options = {});

// Evaluates with changes of the costs (costs/what_if.h: "device:2=1.5"). Throws InputError for one that
// cannot be read, and for costs that add up to more than a number can hold.
Result evaluate_changed(const schedule::Program& program, const Costs& costs,
                        const std::vector<std::string>& changes, const ResultOptions& options = {});

// Accounts for a timeline that is there already: a run's own measurements beside a simulation of them.
Result account(const schedule::Program& program, schedule::Timeline timeline, const Costs& costs,
               const ResultOptions& options = {});

}  // namespace penstock::sim
