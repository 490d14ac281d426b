// SPDX-License-Identifier: Apache-2.0
// How mpirun ranks that compute on cards exchange data in card memory.
#pragma once

#include <memory>

#include "comm/communicator.h"

namespace penstock::cli {

// Number of ranks that compute on this rank's card; 0 on the CPU or without a card. Collective.
int ranks_on_card(comm::Communicator& world);

// Returns a communicator over NCCL, if the library is found and every rank has its own card or
// NCCL_MULTI_RANK_GPU_ENABLE is 1. Null on the CPU, and where messages go through host memory, in which case
// rank 0 prints the reason. Collective. `world` must outlive the result.
std::unique_ptr<comm::Communicator> card_ranks(comm::Communicator& world);

// Returns body(world), with the communicator of card_ranks() in place of `world` if there is one.
template <class Body>
auto by_cards(comm::Communicator& world, Body&& body) {
  const auto cards = card_ranks(world);
  return body(cards ? *cards : world);
}

}  // namespace penstock::cli
