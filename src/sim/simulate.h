// SPDX-License-Identifier: Apache-2.0
// Event simulation of a program: the start and end of each op. The order on every lane is fixed, so this is a
// longest (critical) path, found in O(ops).
//
// Lanes are as in schedule/program.h. Compute ops, copies and collectives take the time of the costs, one
// after the other on their lane. A send starts when its producer is done; its message then occupies the link
// to the peer (one link per ordered pair of devices, first-in-first-out, shared by the channels) and arrives
// after the latency, whether or not the receive is posted. A receive ends when it is posted and its message
// has arrived. A collective starts when all its members (schedule/meeting.h) have arrived and lasts for the
// longest of their times. Programs with exchange run in exchange_run.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedule/timeline.h"
#include "sim/costs/costs.h"
#include "sim/idle.h"
#include "sim/in_flight.h"

namespace penstock::sim {

// An op that can never start or end, and the op of its device that never ends and blocks it.
struct Stall {
  int device = 0;
  std::uint32_t op = 0;
  std::uint32_t waits_for = 0;
};

struct Deadlock {
  std::vector<Stall> stalls;  // one per unfinished device
  std::string text;           // one sentence that follows the chain of waits
};

struct Simulation {
  schedule::Timeline timeline;       // incomplete after a deadlock: ops that never end have end < start
  std::optional<Deadlock> deadlock;  // absent if the program ran to its end
};

// The totals of a simulation, without the times of single ops.
struct Summary {
  Seconds makespan = 0;
  std::vector<DeviceTime> times;    // [device]; imbalance is counted as dependency
  std::vector<InFlight> in_flight;  // [device]
  bool equal_actions = false;       // all actions of a kind take the same time: no imbalance
  bool moves_bytes = false;         // at least one op has bytes
};

// Peers must exist (parse_program and the passes ensure it). The program need not be legal: a deadlock is
// reported.
Simulation simulate(const schedule::Program& program, const Costs& costs);

// The same with bit-identical results, but faster and with less memory, as it does not keep every op's times.
// Returns nothing if it would need them: for a deadlock, exchange, lanes that overtake each other, or an op
// that waits for one issued long before it. Then use simulate().
std::optional<Summary> summarize(const schedule::Program& program, const Costs& costs);

}  // namespace penstock::sim
