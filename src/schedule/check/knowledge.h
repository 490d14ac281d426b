// SPDX-License-Identifier: Apache-2.0
// What is known to be done when an op of one device starts, from the order on lanes and from what ops wait
// for.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "schedule/program.h"

namespace penstock::schedule {

class Knowledge {
 public:
  // The device's ops must wait only for earlier ones. O(ops + waits).
  explicit Knowledge(const DeviceProgram& device);

  // Whatever the times are, `earlier` is done when `op` starts.
  bool is_done(std::uint32_t earlier, std::uint32_t op) const;

 private:
  using Counts = std::array<std::uint32_t, kLanes>;

  const DeviceProgram& device_;
  std::vector<Counts>
      started_;                // [op] ops of each lane known to have started when it starts, itself included
  std::vector<Counts> named_;  // [op] on each lane, 1 + the first place from which it is waited for
  std::vector<std::uint32_t> place_;  // [op] among the ops of its lane
};

}  // namespace penstock::schedule
