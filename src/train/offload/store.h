// SPDX-License-Identifier: Apache-2.0
// Storage of offloaded records: the host's memory, or a file.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/units.h"

namespace penstock::train {

// A place of fixed size. Calls may come from two threads at once, for ranges that do not overlap. On a card
// they are in the order of the caller's stream (backend/copy.h).
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

// Another store, if this one has less room; it is gone first. To pin memory for a card takes long.
void ensure_room(std::unique_ptr<OffloadStore>& store, Bytes size,
                 const std::function<std::unique_ptr<OffloadStore>()>& make);

// An arena of host memory, mapped once and reused; errors as in backend/host_memory.h.
std::unique_ptr<OffloadStore> host_store(Bytes size);

// An unnamed file in the directory, for memory of the host; errors as in files/spill_file.h, which name the
// `rank` of the world.
std::unique_ptr<OffloadStore> disk_store(const std::string& directory, int rank, Bytes size);

}  // namespace penstock::train
