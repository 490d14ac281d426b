// SPDX-License-Identifier: Apache-2.0
// The NCCL functions in use, loaded at run time: a machine with one GPU does not need the library.
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
  std::function<int(Group*, int ranks, Id, int rank)> init_rank;  // blocks until all ranks join
  std::function<int(const void*, std::size_t, int type, int peer, Group, void* stream)> send;
  std::function<int(void*, std::size_t, int type, int peer, Group, void* stream)> receive;
  std::function<int(Group, int* error)> async_error;
  std::function<int(Group)> destroy, abort;
  std::function<const char*(int)> text_of;

  // Throws RunError with NCCL's text unless the code is kSuccess.
  void require(int code) const;
};

// Loads libnccl.so.2. Returns nullopt if it is missing or lacks a function.
std::optional<Nccl> load_nccl();

}  // namespace penstock::comm
