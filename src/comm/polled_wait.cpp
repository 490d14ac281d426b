// SPDX-License-Identifier: Apache-2.0
#include "comm/polled_wait.h"

#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "comm/backoff.h"
#include "comm/message_notes.h"

namespace penstock::comm {

void wait_by_polling(Request::State& state, const Message& message, Seconds timeout,
                     const std::function<bool()>& meanwhile) {
  Deadline deadline(timeout);
  Backoff backoff;
  for (std::int64_t before = state.progress(); !state.test(); backoff.pause()) {
    const bool worked = meanwhile && meanwhile();
    const std::int64_t now = state.progress();
    if (worked || now != before) {
      before = now;
      deadline.restart();
      backoff.restart();
    } else if (deadline.passed()) {
      throw timed_out(message, timeout);
    }
  }
}

void advance_until(const std::function<bool()>& done, const std::function<bool()>& advance,
                   const std::function<Awaited()>& awaited, Seconds timeout) {
  Deadline deadline(timeout);
  Backoff backoff;
  std::optional<WaitScope> waiting;
  std::int64_t before = 0;
  while (!done()) {
    if (advance()) {
      waiting.reset();
      deadline.restart();
      backoff.restart();
      continue;
    }
    const Awaited now = awaited();
    if (!waiting) waiting.emplace(now.message);
    if (std::exchange(before, now.progress) != now.progress) deadline.restart();
    if (deadline.passed())
      throw RunError(std::string(now.work) + ": " + timed_out(now.message, timeout).what());
    backoff.pause();
  }
}

}  // namespace penstock::comm
