// SPDX-License-Identifier: Apache-2.0
// Many ranks in one process, one thread each.
#pragma once

#include <functional>

#include "comm/communicator.h"
#include "comm/ranks.h"

namespace penstock::comm {

// Runs body once per rank, each on its own thread, and joins them. When a body throws, its rank aborts the
// group with the exception's text, the others unwind with a PeerFailure, and the first failure is rethrown
// here unchanged. A body that returns after calling abort counts as failed: RunError with its reason.
void run_ranks(int ranks, const std::function<void(Communicator&)>& body, const FailureReport& report = {});

}  // namespace penstock::comm
