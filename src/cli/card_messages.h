// SPDX-License-Identifier: Apache-2.0
// How ranks of mpirun that compute on cards exchange what is in them.
#pragma once

#include <memory>

#include "comm/communicator.h"

namespace penstock::cli {

// How many ranks compute on the card of this one; 0 on the CPU, or where there is no card. Collective.
int ranks_on_card(comm::Communicator& world);

// By NCCL, where there is the library and every rank has a card of its own, or NCCL_MULTI_RANK_GPU_ENABLE is
// 1; nothing where ranks compute on the CPU, or where messages go through the host's memory, which rank 0
// then says with the reason. Collective. `world` outlives the result.
std::unique_ptr<comm::Communicator> card_ranks(comm::Communicator& world);

// The result of body(world), or of the same ranks with such messages.
template <class Body>
auto by_cards(comm::Communicator& world, Body&& body) {
  const auto cards = card_ranks(world);
  return body(cards ? *cards : world);
}

}  // namespace penstock::cli
