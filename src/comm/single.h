// SPDX-License-Identifier: Apache-2.0
// The null transport: one rank. Messages to itself work, in order per channel.
#pragma once

#include <memory>

#include "comm/communicator.h"

namespace penstock::comm {

std::unique_ptr<Communicator> make_single();

}  // namespace penstock::comm
