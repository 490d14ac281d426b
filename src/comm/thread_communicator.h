// SPDX-License-Identifier: Apache-2.0
// One rank among the threads of this process: what run_ranks gives each body, and, alone, what `single` is.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/mailbox.h"

namespace penstock::comm {

// The group of all ranks of the world, seen by one of them.
std::unique_ptr<Communicator> make_thread_rank(std::shared_ptr<ThreadWorld> world, int rank);

}  // namespace penstock::comm
