// SPDX-License-Identifier: Apache-2.0
// What the transports share about one message: how it is named in errors, and when a wait for it gives up.
#pragma once

#include <chrono>
#include <string>

#include "base/error.h"
#include "base/units.h"

namespace penstock::comm {

// The channel of the messages inside collectives; those of callers count from 0 and stay below the limit.
inline constexpr int collective_channel = -1;
inline constexpr int channel_limit = 255;

// One side of a message, as this rank sees it.
struct Message {
  bool sending = false;
  int peer = 0;  // rank of the world
  int channel = 0;
  Bytes bytes = 0;
};

std::string describe(const Message& message);  // "the message from rank 3 on channel 1 (4.00 MiB)"
RunError timed_out(const Message& message, Seconds timeout);
RunError wrong_length(const Message& message, Bytes arrived);

// A moment `timeout` seconds from now; never, when that is 0.
class Deadline {
 public:
  explicit Deadline(Seconds timeout);
  bool never() const { return timeout_ == Duration::zero(); }
  bool passed() const { return !never() && Clock::now() >= end_; }
  void restart() { end_ = Clock::now() + timeout_; }
  std::chrono::steady_clock::time_point end() const { return end_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Duration = Clock::duration;
  Duration timeout_;
  Clock::time_point end_;
};

}  // namespace penstock::comm
