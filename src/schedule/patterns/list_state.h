// SPDX-License-Identifier: Apache-2.0
// The state of a list scheduler (list_scheduler.h).
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "schedule/patterns/earliest.h"
#include "schedule/patterns/list_problem.h"

namespace penstock::schedule {

using Ticks = std::uint64_t;
inline constexpr Ticks kNever = std::numeric_limits<Ticks>::max();

// Where an action's output goes.
struct Way {
  Ticks* ready = nullptr;  // by micro-batch
  int device = 0;
  int chunk = 0;
  Step::Kind kind = Step::Forward;
  Ticks delay = 0;
};

// One stage of a device.
struct Chunk {
  Ticks seconds[3]{};                 // [Step::Kind]
  Ticks* ready[2]{};                  // of F and I, by micro-batch: when the input is there
  std::uint32_t next[3]{};            // micro-batch
  Way way[2];                         // of F's output and I's
  Ticks thresholds[kOverrunCount]{};  // by overrun: a W is taken when so much time is left
  Bytes record = 0;
};

struct Device {
  Ticks heads[2][2]{};  // [F or I][chunk]: when the next one's input is there, if known
  Ticks free = 0;
  Ticks work = 0;   // left
  Ticks chain = 0;  // F and I left
  Ticks tail = 0;   // from its last I to the end, at least
  Bytes held = 0;
  Step* row = nullptr;
  Step* next = nullptr;  // of the row
  const Step* guide = nullptr;
  const Step* guide_end = nullptr;
  std::uint8_t* owed = nullptr;  // chunks of the W that are possible, from `paid` on
  std::uint8_t* paid = nullptr;
  bool waiting = false;
  bool forward_latest = false;
  Chunk chunks[2];
};

// A state seen before, up to a shift in time and micro-batches, and how much had been done.
struct Remembered {
  std::vector<std::uint64_t> state;
  std::vector<Device> devices;
  std::uint32_t micro_batch = 0;
  Ticks now = 0;
  Ticks idle = 0;
  std::size_t left = 0;
};

}  // namespace penstock::schedule
