// SPDX-License-Identifier: Apache-2.0
// When each op ran. The simulator and the interpreter write the same form, so that one tool can compare
// prediction and measurement.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "schedule/program.h"

namespace penstock::schedule {

// One op of one device. Times are seconds since the start of the step, on a clock that all devices share. A
// receive starts when it is posted and ends when its message has arrived.
struct Event {
  Seconds start = 0;
  Seconds end = 0;
};

// A span in which a device served another's request, or waited inside an op for the reply to its own.
struct ExchangeSpan {
  std::uint32_t exchange = 0;  // index into the program's exchanges
  Seconds start = 0;
  Seconds end = 0;
  bool waiting = false;
  Seconds processor = 0;  // processor time of the serving thread, if measured
};

struct Timeline {
  std::vector<std::vector<Event>> devices;                // [device][op]
  std::vector<std::vector<ExchangeSpan>> exchanges = {};  // [device], sorted by start; empty without exchange

  Seconds makespan() const {
    Seconds last = 0;
    for (const auto& events : devices) {
      for (const Event& event : events) last = event.end > last ? event.end : last;
    }
    return last;
  }
};

}  // namespace penstock::schedule
