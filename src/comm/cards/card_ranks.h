// SPDX-License-Identifier: Apache-2.0
// Ranks with a card each, whose messages of the cards' memory go by NCCL; all others, and failures, by
// another communicator.
#pragma once

#include <memory>

#include "comm/cards/nccl.h"
#include "comm/communicator.h"

namespace penstock::comm {

// `control` outlives the result and is used through it alone. Collective. Sub-groups too go by NCCL. A
// message of a card's memory is done when the card has moved it, and shows no progress before. Both sides
// must give the same length, or the message never ends.
std::unique_ptr<Communicator> make_card_ranks(Communicator& control, const Nccl& nccl);

}  // namespace penstock::comm
