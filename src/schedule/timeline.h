// SPDX-License-Identifier: Apache-2.0
// What ran when: written by the simulator and by the interpreter in the same form, so that prediction and
// measurement are laid side by side by one tool.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "schedule/program.h"

namespace penstock::schedule {

// One op of one device. Times are seconds since the start of the step, on the clock all devices share.
// A receive begins when it is posted and ends when its message has arrived.
struct Event {
  Seconds start = 0;
  Seconds end = 0;
};

// A time in which a device served another's request, or waited inside an op for the reply to its own.
struct ExchangeSpan {
  std::uint32_t exchange = 0;  // index into the program's exchange
  Seconds start = 0;
  Seconds end = 0;
  bool waiting = false;
  Seconds processor = 0;  // of the thread that served, when measured
};

struct Timeline {
  std::vector<std::vector<Event>> devices;                // of each, one event per op, with the op's index
  std::vector<std::vector<ExchangeSpan>> exchanges = {};  // of each device, by start; empty without exchange

  Seconds makespan() const {
    Seconds last = 0;
    for (const auto& events : devices) {
      for (const Event& event : events) last = event.end > last ? event.end : last;
    }
    return last;
  }
};

}  // namespace penstock::schedule
