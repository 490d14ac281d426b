// SPDX-License-Identifier: Apache-2.0
// Many ranks in one process, each a thread.
#pragma once

#include <functional>

#include "comm/communicator.h"

namespace penstock::comm {

// Runs body once per rank, each on its own thread, and joins them all. When a body throws, its rank aborts the group
// with the exception's text, the others unwind, and the first failure is rethrown here.
void run_ranks(int ranks, const std::function<void(Communicator&)>& body);

}  // namespace penstock::comm
