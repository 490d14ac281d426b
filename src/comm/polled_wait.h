// SPDX-License-Identifier: Apache-2.0
// Waits for what moves only when tested.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/units.h"
#include "comm/communicator.h"
#include "comm/message.h"

namespace penstock::comm {

// Tests until the message is done. `meanwhile` is called between tests and returns whether it made progress;
// may be empty. Throws RunError after `timeout` seconds without progress of `meanwhile` or the message.
void wait_by_polling(Request::State& state, const Message& message, Seconds timeout,
                     const std::function<bool()>& meanwhile = {});

// The message that keeps work of several messages from progressing.
struct Awaited {
  Message message;
  std::string_view work;      // names it in errors; valid until the next advance()
  std::int64_t progress = 0;  // of the message
};

// Calls `advance`, which returns whether it made progress, until `done`. When there was no progress, asks for
// the message waited for, notes the wait (message_notes.h) and rests. Throws RunError that names the work and
// the message after `timeout` seconds without progress.
void advance_until(const std::function<bool()>& done, const std::function<bool()>& advance,
                   const std::function<Awaited()>& awaited, Seconds timeout);

}  // namespace penstock::comm
