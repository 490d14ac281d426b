// SPDX-License-Identifier: Apache-2.0
// The state of the list scheduler (list_scheduler.h).
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
  Ticks* ready = nullptr;  // [micro_batch] arrival time
  int device = 0;
  int chunk = 0;
  Step::Kind kind = Step::Forward;
  Ticks delay = 0;
};

// One stage of a device.
struct Chunk {
  Ticks seconds[3]{};                 // [Step::Kind] duration
  Ticks* ready[2]{};                  // [F or I][micro_batch] when the input is there
  std::uint32_t next[3]{};            // [Step::Kind] next micro-batch
  Way way[2];                         // [F or I]
  Ticks thresholds[kOverrunCount]{};  // [overrun] a W is taken if at least this much time is left
  Bytes record = 0;
};

struct Device {
  Ticks heads[2][2]{};  // [F or I][chunk] when the next one's input is there; kNever if unknown
  Ticks free = 0;       // when its latest action ends
  Ticks work = 0;       // duration of the remaining actions
  Ticks chain = 0;      // duration of the remaining F and I
  Ticks tail = 0;       // lower bound of the time from its last I to the end
  Bytes held = 0;
  Step* row = nullptr;
  Step* next = nullptr;  // end of the row so far
  const Step* guide = nullptr;
  const Step* guide_end = nullptr;
  std::uint8_t* owed = nullptr;  // end of the chunks of the possible W, which begin at `paid`
  std::uint8_t* paid = nullptr;
  bool waiting = false;
  bool forward_latest = false;
  Chunk chunks[2];
};

// A state seen before, up to a shift in time and micro-batches, and the progress at that point.
struct Remembered {
  std::vector<std::uint64_t> state;
  std::vector<Device> devices;
  std::uint32_t micro_batch = 0;
  Ticks now = 0;
  Ticks idle = 0;
  std::size_t left = 0;
};

}  // namespace penstock::schedule
