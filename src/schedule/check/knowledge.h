// SPDX-License-Identifier: Apache-2.0
// Which ops of a device are known to be done when an op starts, derived from the lane order and the `after`
// lists.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "schedule/program.h"

namespace penstock::schedule {

class Knowledge {
 public:
  // Ops must wait only for earlier ops. O(ops + waits).
  explicit Knowledge(const DeviceProgram& device);

  // True if `earlier` is done when `op` starts, whatever the op times are.
  bool is_done(std::uint32_t earlier, std::uint32_t op) const;

 private:
  using Counts = std::array<std::uint32_t, kLanes>;

  const DeviceProgram& device_;
  std::vector<Counts> started_;  // [op] number of ops per lane known to have started by then, itself included
  std::vector<Counts> named_;    // [op] per lane, 1 + place of the first op that waits for it
  std::vector<std::uint32_t> place_;  // [op] index among the ops of its lane
};

}  // namespace penstock::schedule
