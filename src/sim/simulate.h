// SPDX-License-Identifier: Apache-2.0
// Event simulation of a program: when does each op start and end? As the order on every lane is fixed, it is
// a longest path, found in O(ops).
//
// Lanes as in schedule/program.h. A compute op, copy or collective lasts what the costs say, one after the
// other on its lane. A send starts when its producer is done; its message then holds the link to the peer
// (one link per ordered pair of devices, first-in-first-out, shared by the channels) and arrives after the
// latency, whether or not the receive is posted. A receive ends when it is posted and its message has
// arrived. A collective starts when all its members (schedule/meeting.h) have come to it and ends after the
// longest of their times. Programs with exchange go to exchange_run.h.
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

// An op that can never start, and the earlier op of its device that never ends.
struct Stall {
  int device = 0;
  std::uint32_t op = 0;
  std::uint32_t waits_for = 0;
};

struct Deadlock {
  std::vector<Stall> stalls;  // one per device that is not through
  std::string text;           // one sentence, following who waits for whom
};

struct Simulation {
  schedule::Timeline timeline;       // incomplete after a deadlock: ops that never end have end < start
  std::optional<Deadlock> deadlock;  // absent: the program ran to its end
};

// What a simulation adds up to, without the times of single ops.
struct Summary {
  Seconds makespan = 0;
  std::vector<DeviceTime> times;    // imbalance is left in dependency
  std::vector<InFlight> in_flight;  // of each device
  bool equal_actions = false;       // all of a kind take the same time: nothing is imbalance
  bool moves_bytes = false;         // an op has bytes
};

// The program must name peers that it has (parse_program and the passes see to it); whether it is legal is
// found out.
Simulation simulate(const schedule::Program& program, const Costs& costs);

// The same of a program that ends, with the same bits, in a time and memory that do not depend on keeping
// every op's times. Nothing where it needs them after all: for a deadlock, exchange, lanes that overtake each
// other, or an op that waits for one issued long before it. Then simulate() has the answer.
std::optional<Summary> summarize(const schedule::Program& program, const Costs& costs);

}  // namespace penstock::sim
