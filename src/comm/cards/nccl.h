// SPDX-License-Identifier: Apache-2.0
// NCCL's functions, as far as they are used here. Loaded while the program runs: a machine with one card
// needs none.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

namespace penstock::comm {

struct Nccl {
  struct Id {
    char bytes[128];
  };
  using Group = void*;  // ncclComm_t
  static constexpr int kSuccess = 0, kInProgress = 7;
  static constexpr int kBytes = 1;  // ncclUint8

  std::function<int(Id*)> get_unique_id;
  std::function<int(Group*, int ranks, Id, int rank)> init_rank;  // waits for the other ranks
  std::function<int(const void*, std::size_t, int type, int peer, Group, void* stream)> send;
  std::function<int(void*, std::size_t, int type, int peer, Group, void* stream)> receive;
  std::function<int(Group, int* error)> async_error;
  std::function<int(Group)> destroy, abort;
  std::function<const char*(int)> text_of;

  // Throws RunError with NCCL's text, unless the code is that of success.
  void require(int code) const;
};

// Of libnccl.so.2; nothing where there is none, or one that lacks a function.
std::optional<Nccl> load_nccl();

}  // namespace penstock::comm
