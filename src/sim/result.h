// SPDX-License-Identifier: Apache-2.0
// The result of a simulation: times, bubbles, idle time by cause, memory, the timeline.
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
  MemoryUse memory;
};

struct Result {
  std::string name;  // the program's
  Seconds makespan = 0;
  // 1 - (sum of busy) / (p · makespan): over the whole step, ramps included.
  double bubble_fraction = 0;
  // Idle time inside a device's span over that span, mean over the devices: as in the zero-bubble papers.
  double span_bubble_fraction = 0;
  std::vector<DeviceResult> devices;
  schedule::Timeline timeline;       // empty unless requested
  std::optional<Deadlock> deadlock;  // if set, all else is empty
};

struct ResultOptions {
  bool imbalance = true;  // split it from dependency: takes a second simulation if times differ
  bool memory = true;
  bool timeline = true;
  bool memory_samples = false;  // bytes over time, not only the peaks
};

inline constexpr ResultOptions kTotals{.imbalance = false, .memory = false, .timeline = false};

// Simulates and accounts.
Result evaluate(const schedule::Program& program, const Costs& costs, const ResultOptions& options = {});

// Throws NoAnswer if the program deadlocked. That of a legal schedule may, through what a pass adds to it,
// such as visits of the vocabulary.
void require_end(const Result& result);

// Evaluates with changed costs (costs/what_if.h: "device:2=1.5"). Throws InputError for a change that cannot
// be parsed and for costs whose sum is not finite.
Result evaluate_changed(const schedule::Program& program, const Costs& costs,
                        const std::vector<std::string>& changes, const ResultOptions& options = {});

// Accounts for an existing timeline, such as a run's measurements to compare with their simulation.
Result account(const schedule::Program& program, schedule::Timeline timeline, const Costs& costs,
               const ResultOptions& options = {});

}  // namespace penstock::sim
