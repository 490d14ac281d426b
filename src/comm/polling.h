// SPDX-License-Identifier: Apache-2.0
// A communicator whose waits run other work, so that a waiting rank keeps serving others. Messages and
// failures go through another communicator.
#pragma once

#include <functional>
#include <memory>

#include "comm/communicator.h"

namespace penstock::comm {

// `inner` outlives the result; the same thread may use both, but may run collectives on only one of them at a
// time. `meanwhile` is called repeatedly during a wait and returns whether it made progress. It must not wait
// on the result itself; its exceptions end the wait. Callers' channels are 0 to 253. Sub-groups also poll.
std::unique_ptr<Communicator> make_polling(Communicator& inner, std::function<bool()> meanwhile,
                                           Seconds timeout = 120);

}  // namespace penstock::comm
