// SPDX-License-Identifier: Apache-2.0
// When a device waited for other devices' results, and when it computed for them.
#pragma once

#include <vector>

#include "backend/clock.h"
#include "schedule/timeline.h"

namespace penstock::train {

// The spans of one step.
class ExchangeTimes {
 public:
  void clear() { waits_.clear(), served_.clear(); }

  void waited(std::uint32_t exchange, const backend::Moment& start, const backend::Moment& end) {
    waits_.push_back({{.exchange = exchange, .waiting = true}, start, end});
  }
  // `processor`: CPU seconds of the thread.
  void served(std::uint32_t exchange, const backend::Moment& start, const backend::Moment& end,
              Seconds processor) {
    served_.push_back({{.exchange = exchange, .processor = processor}, start, end});
  }

  // Sorted by start, in seconds of the clock. A wait excludes the time in which the device served a request.
  // Blocks until the device has completed all of them.
  std::vector<schedule::ExchangeSpan> spans(const backend::DeviceClock& clock) const;

 private:
  struct Timed {
    schedule::ExchangeSpan span;
    backend::Moment start, end;
  };
  static std::vector<schedule::ExchangeSpan> resolved(const std::vector<Timed>& all,
                                                      const backend::DeviceClock& clock);

  std::vector<Timed> waits_, served_;  // each in order
};

}  // namespace penstock::train
