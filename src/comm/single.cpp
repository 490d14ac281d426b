// SPDX-License-Identifier: Apache-2.0
#include "comm/single.h"

#include "comm/thread_communicator.h"

namespace penstock::comm {

std::unique_ptr<Communicator> make_single() { return make_thread_rank(std::make_shared<ThreadWorld>(1), 0); }

}  // namespace penstock::comm
