// SPDX-License-Identifier: Apache-2.0
#include "cli/gpu_messages.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/device.h"
#include "cli/agree.h"
#include "cli/tell.h"
#include "comm/gpus/gpu_ranks.h"
#include "comm/texts.h"

namespace penstock::cli {

namespace {

// NCCL refuses two ranks on one GPU, except from 2.30 on with this variable.
bool nccl_shares_gpus() {
  const char* const told = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return told != nullptr && std::string_view(told) == "1";
}

}  // namespace

// Compares GPU ids: launchers may show each rank a different GPU as its only one, with the same number.
int ranks_on_gpu(comm::Communicator& world) {
  if (backend::compute_device().is_cpu()) return 0;
  const std::optional<backend::Gpu> gpu = backend::gpu();
  const std::string mine = gpu ? gpu->id : std::string();
  const std::vector<std::string> all = comm::all_texts(mine, world);
  return gpu ? static_cast<int>(std::ranges::count(all, mine)) : 0;
}

std::unique_ptr<comm::Communicator> gpu_ranks(comm::Communicator& world) {
  if (backend::compute_device().is_cpu() || world.size() == 1) return nullptr;
  const int here = ranks_on_gpu(world);
  if (on_any_rank(here == 0, world)) return nullptr;  // the run is refused
  const std::optional<comm::Nccl> nccl = comm::load_nccl();
  const bool shared = on_any_rank(here > 1 && !nccl_shares_gpus(), world);
  const bool lacking = on_any_rank(!nccl, world);
  if (!shared && !lacking) return comm::make_gpu_ranks(world, *nccl);
  const std::string reason = shared ? "several ranks share a GPU" : "libnccl.so.2 is not there";
  if (world.rank() == 0) tell_remark("messages between ranks go through the host's memory: " + reason);
  return nullptr;
}

}  // namespace penstock::cli
