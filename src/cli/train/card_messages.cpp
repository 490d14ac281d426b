// SPDX-License-Identifier: Apache-2.0
#include "cli/train/card_messages.h"

#include <optional>
#include <string>

#include "backend/device.h"
#include "cli/agree.h"
#include "cli/tell.h"
#include "comm/cards/card_ranks.h"
#include "comm/mpi.h"

namespace penstock::cli {

std::unique_ptr<comm::Communicator> card_ranks(comm::Communicator& world) {
  if (backend::compute_device().is_cpu() || world.size() == 1) return nullptr;
  const std::optional<backend::Card> card = backend::card();
  const std::optional<comm::Nccl> nccl = comm::load_nccl();
  const bool shared = on_any_rank(!card || comm::local_ranks() > card->cards, world);
  const bool lacking = on_any_rank(!nccl, world);
  if (!shared && !lacking) return comm::make_card_ranks(world, *nccl);
  const std::string reason = shared ? "several ranks share a card" : "libnccl.so.2 is not there";
  if (world.rank() == 0) tell("messages between ranks go through the host's memory: " + reason);
  return nullptr;
}

}  // namespace penstock::cli
