// SPDX-License-Identifier: Apache-2.0
#include "comm/cards/nccl.h"

#include <dlfcn.h>

#include <string>

#include "base/error.h"

namespace penstock::comm {
namespace {

// False where the library has no function of that name.
template <class Result, class... Arguments>
bool take(void* library, const char* name, std::function<Result(Arguments...)>& function) {
  auto* const found = reinterpret_cast<Result (*)(Arguments...)>(dlsym(library, name));
  function = found;
  return found != nullptr;
}

}  // namespace

std::optional<Nccl> load_nccl() {
  void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);  // stays for the life of the process
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
