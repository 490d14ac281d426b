// SPDX-License-Identifier: Apache-2.0
// The wait of transports whose messages move only when they are asked.
#pragma once

#include <functional>

#include "base/units.h"
#include "comm/communicator.h"
#include "comm/message.h"

namespace penstock::comm {

// Tests until the message is done. `meanwhile` is called between tests and returns whether it made progress;
// may be empty. Throws RunError after `timeout` seconds in which neither that nor the message has moved.
void wait_by_polling(Request::State& state, const Message& message, Seconds timeout,
                     const std::function<bool()>& meanwhile = {});

}  // namespace penstock::comm
