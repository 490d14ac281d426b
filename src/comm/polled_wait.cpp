// SPDX-License-Identifier: Apache-2.0
#include "comm/polled_wait.h"

#include "comm/backoff.h"

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

}  // namespace penstock::comm
