// SPDX-License-Identifier: Apache-2.0
// Storage for offloaded records: the host's memory, or a file.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/units.h"

namespace penstock::train {

// Storage of fixed size. Two threads may call it at once, for disjoint ranges. On a GPU, calls run in the
// order of the caller's stream (backend/copy.h).
class OffloadStore {
 public:
  explicit OffloadStore(Bytes size) : size_(size) {}
  virtual ~OffloadStore() = default;
  OffloadStore(const OffloadStore&) = delete;
  OffloadStore& operator=(const OffloadStore&) = delete;

  Bytes size() const { return size_; }
  virtual void write(Bytes offset, std::span<const std::byte> bytes) = 0;
  virtual void read(Bytes offset, std::span<std::byte> bytes) = 0;

 private:
  Bytes size_;
};

// Replaces a store smaller than `size`, freeing it first. Keeps others, since pinning memory is slow.
void ensure_room(std::unique_ptr<OffloadStore>& store, Bytes size,
                 const std::function<std::unique_ptr<OffloadStore>()>& make);

// An arena of host memory, mapped once and reused; errors as in backend/host_memory.h.
std::unique_ptr<OffloadStore> host_store(Bytes size);

// An unnamed file in the directory, for host memory only; errors as in files/spill_file.h, naming `rank`,
// which is the world's.
std::unique_ptr<OffloadStore> disk_store(const std::string& directory, int rank, Bytes size);

}  // namespace penstock::train
