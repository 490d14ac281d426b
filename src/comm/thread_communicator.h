// SPDX-License-Identifier: Apache-2.0
// A rank that is a thread of this process: run_ranks passes one to each body; `single` is a world of one.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/mailbox.h"

namespace penstock::comm {

// The world group, as seen by `rank`.
std::unique_ptr<Communicator> make_thread_rank(std::shared_ptr<ThreadWorld> world, int rank);

}  // namespace penstock::comm
