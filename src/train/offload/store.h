// SPDX-License-Identifier: Apache-2.0
// Storage of offloaded records: the host's memory, or a file.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/units.h"

namespace penstock::train {

// A place of fixed size. Calls may come from two threads at once, for ranges that do not overlap. On a card
// they are in the order of the caller's stream (backend/copy.h).
class OffloadStore {
 public:
  virtual ~OffloadStore() = default;
  virtual void write(Bytes offset, std::span<const std::byte> bytes) = 0;
  virtual void read(Bytes offset, std::span<std::byte> bytes) = 0;
};

// An arena of host memory, mapped once and reused; errors as in backend/host_memory.h.
std::unique_ptr<OffloadStore> host_store(Bytes size);

// An unnamed file in the directory, for memory of the host; errors as in files/spill_file.h, which name the
// `rank` of the world.
std::unique_ptr<OffloadStore> disk_store(const std::string& directory, int rank, Bytes size);

}  // namespace penstock::train
