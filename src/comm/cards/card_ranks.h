// SPDX-License-Identifier: Apache-2.0
// Ranks with a card each, whose messages of the cards' memory go by NCCL; all others, and failures, by
// another communicator.
#pragma once

#include <memory>

#include "comm/cards/nccl.h"
#include "comm/communicator.h"

namespace penstock::comm {

// `control` outlives the result and is used through it alone. Collective. Sub-groups too go by NCCL. Groups
// whose messages are of cards' memory are connected first. Such a message is sent while its sender waits for
// something, is done when the card has moved it, and shows no progress before.
std::unique_ptr<Communicator> make_card_ranks(Communicator& control, const Nccl& nccl);

}  // namespace penstock::comm
