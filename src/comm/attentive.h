// SPDX-License-Identifier: Apache-2.0
// A communicator whose waits do other work meanwhile: whoever waits on it keeps serving others. Messages and
// failures are another communicator's.
#pragma once

#include <functional>
#include <memory>

#include "comm/communicator.h"

namespace penstock::comm {

// `inner` outlives the result; both may be used, by the same thread, but collectives on one of them at a
// time. `meanwhile` is called again and again while a wait lasts, and says whether it did anything, which
// counts as progress. It must not wait on the result itself; its exceptions end the wait. Callers' channels
// are 0 to 253. Sub-groups are as attentive.
std::unique_ptr<Communicator> make_attentive(Communicator& inner, std::function<bool()> meanwhile,
                                             Seconds timeout = 120);

}  // namespace penstock::comm
