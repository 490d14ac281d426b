// SPDX-License-Identifier: Apache-2.0
#include "comm/message.h"

#include <algorithm>
#include <atomic>

namespace penstock::comm {
namespace {

std::atomic<bool> waited_in_vain = false;

}  // namespace

std::string describe(const Message& message) {
  const std::string peer = (message.sending ? "to rank " : "from rank ") + std::to_string(message.peer);
  const std::string lane = message.channel == kCollectiveChannel
                               ? std::string(" in a collective")
                               : " on channel " + std::to_string(message.channel);
  return "the message " + peer + lane + " (" + print_bytes(message.bytes) + ")";
}

RunError timed_out(const Message& message, Seconds timeout) {
  waited_in_vain = true;
  return RunError("waited " + print_seconds(timeout) + " for " + describe(message) +
                  " without progress; is rank " + std::to_string(message.peer) + " stuck?");
}

bool any_timed_out() { return waited_in_vain; }

RunError wrong_length(const Message& message, Bytes arrived) {
  return RunError(describe(message) + " arrived with another length: " + std::to_string(arrived) +
                  " bytes instead of " + std::to_string(message.bytes));
}

Deadline::Deadline(Seconds timeout) {
  constexpr Seconds longest = 1e8;  // about three years: the sum below stays inside the clock's range
  timeout_ = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::min(timeout, longest)));
  restart();
}

}  // namespace penstock::comm
