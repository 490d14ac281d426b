// SPDX-License-Identifier: Apache-2.0
#include "comm/gpus/nccl.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "base/error.h"

namespace penstock::comm {
namespace {

// Returns false if the library lacks the function.
template <class Result, class... Arguments>
bool take(void* library, const char* name, std::function<Result(Arguments...)>& function) {
  auto* const found = reinterpret_cast<Result (*)(Arguments...)>(dlsym(library, name));
  function = found;
  return found != nullptr;
}

// Each link is an NCCL communicator whose thread blocks spin on the GPU until the other side's run. By
// default a large message takes 16 or 32 of them, so the links of a group of 8 ranks could occupy all
// multiprocessors, and the blocks that they wait for would never start.
void limit_blocks() { setenv("NCCL_MAX_P2P_NCHANNELS", "8", /*overwrite=*/0); }

}  // namespace

std::optional<Nccl> load_nccl() {
  limit_blocks();
  void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);  // never closed
  if (library == nullptr) return {};
  Nccl nccl;
  const bool all =
      take(library, "ncclGetUniqueId", nccl.get_unique_id) &&
      take(library, "ncclCommInitRank", nccl.init_rank) && take(library, "ncclSend", nccl.send) &&
      take(library, "ncclRecv", nccl.receive) && take(library, "ncclCommGetAsyncError", nccl.async_error) &&
      take(library, "ncclCommDestroy", nccl.destroy) && take(library, "ncclCommAbort", nccl.abort) &&
      take(library, "ncclGetErrorString", nccl.text_of);
  return all ? std::optional(nccl) : std::nullopt;
}

void Nccl::require(int code) const {
  if (code != kSuccess) throw RunError(std::string("NCCL: ") + text_of(code));
}

}  // namespace penstock::comm
