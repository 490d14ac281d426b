// SPDX-License-Identifier: Apache-2.0
// Shared by all transports: message descriptions for errors, and the deadline of a wait.
#pragma once

#include <chrono>
#include <string>

#include "base/error.h"
#include "base/units.h"

namespace penstock::comm {

// The channel of messages inside collectives; callers use 0 .. kChannelLimit - 1.
inline constexpr int kCollectiveChannel = -1;
inline constexpr int kChannelLimit = 255;

// One side of a message, seen from this rank.
struct Message {
  bool sending = false;
  int peer = 0;  // world rank
  int channel = 0;
  Bytes bytes = 0;
};

std::string describe(const Message& message);  // "the message from rank 3 on channel 1 (4.00 MiB)"
RunError timed_out(const Message& message, Seconds timeout);
bool any_timed_out();  // whether any message of this process has timed out
RunError wrong_length(const Message& message, Bytes arrived);

// The time `timeout` seconds from now; never if 0.
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
