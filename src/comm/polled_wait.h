// SPDX-License-Identifier: Apache-2.0
// The wait of transports whose messages move only when tested.
#pragma once

#include <functional>

#include "base/units.h"
#include "comm/communicator.h"
#include "comm/message.h"

namespace penstock::comm {

// Tests until the message is done. `meanwhile` is called between tests and returns whether it made progress;
// may be empty. Throws RunError after `timeout` seconds without progress of `meanwhile` or the message.
void wait_by_polling(Request::State& state, const Message& message, Seconds timeout,
                     const std::function<bool()>& meanwhile = {});

}  // namespace penstock::comm
