// SPDX-License-Identifier: Apache-2.0
#include "cli/train/card_messages.h"

#include <optional>
#include <string>

#include "backend/device.h"
#include "cli/tell.h"
#include "comm/cards/card_ranks.h"
#include "comm/mpi.h"

namespace penstock::cli {
namespace {

// Whether it is so on any rank.
bool anywhere(bool here, comm::Communicator& world) {
  std::int64_t count = here ? 1 : 0;
  world.all_reduce(&count, 1, comm::Type::I64, comm::Reduction::Max);
  return count > 0;
}

}  // namespace

std::unique_ptr<comm::Communicator> card_ranks(comm::Communicator& world) {
  if (backend::compute_device().is_cpu() || world.size() == 1) return nullptr;
  const std::optional<backend::Card> card = backend::card();
  const std::optional<comm::Nccl> nccl = comm::load_nccl();
  const bool shared = anywhere(!card || comm::local_ranks() > card->cards, world);
  const bool lacking = anywhere(!nccl, world);
  if (!shared && !lacking) return comm::make_card_ranks(world, *nccl);
  const std::string reason = shared ? "several ranks share a card" : "libnccl.so.2 is not there";
  if (world.rank() == 0) tell("messages between ranks go through the host's memory: " + reason);
  return nullptr;
}

}  // namespace penstock::cli
