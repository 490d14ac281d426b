// SPDX-License-Identifier: Apache-2.0
// Start and end of a step's ops on the compute device; its clock is read after the step.
#pragma once

#include <optional>
#include <vector>

#include "backend/clock.h"
#include "schedule/timeline.h"

namespace penstock::train {

class OpTimes {
 public:
  void restart(std::size_t ops);  // now is the clock's 0 s

  void begin(std::uint32_t op) { spans_[op] = Span{.start = backend::moment_now(), .end = {}}; }
  void end(std::uint32_t op) { spans_[op]->end = backend::moment_now(); }
  // For an op whose lane measures its own time.
  void forget(std::uint32_t op) { spans_[op].reset(); }
  void note(std::uint32_t op, const schedule::Event& event) {
    events_[op] = event;
    forget(op);
  }

  const backend::DeviceClock& clock() const { return clock_; }

  // Blocks until the device has finished the ops.
  std::vector<schedule::Event> events();

 private:
  struct Span {
    backend::Moment start, end;
  };

  backend::DeviceClock clock_;
  std::vector<std::optional<Span>> spans_;
  std::vector<schedule::Event> events_;
};

}  // namespace penstock::train
