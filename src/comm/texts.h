// SPDX-License-Identifier: Apache-2.0
// Exchange of texts of any length between ranks.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace penstock::comm {

// Returns the text of rank `speaker` on all ranks. Collective.
std::string broadcast_text(const std::string& mine, int speaker, Communicator& world);

// Returns every rank's text, by rank, on all ranks. Collective.
std::vector<std::string> all_texts(const std::string& mine, Communicator& world);

}  // namespace penstock::comm
