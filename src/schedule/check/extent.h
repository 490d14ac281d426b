// SPDX-License-Identifier: Apache-2.0
// The range of numbers that the other rules look at: stages, micro-batches and slices from 0 without gaps.
// Memory and time grow with the number of actions, not with the numbers that they name.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/check/findings.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

struct Extent {
  int stages = 0;
  std::vector<std::int64_t> first_slice{0};  // [micro_batch] index among all slices; one more at the end

  int micro_batches() const { return static_cast<int>(first_slice.size()) - 1; }
  std::int64_t slices() const { return first_slice.back(); }  // sum over the micro-batches
  int slices_of(int micro_batch) const {
    return static_cast<int>(first_slice[micro_batch + 1] - first_slice[micro_batch]);
  }
  bool contains(const Key& key) const {
    return key.stage >= 0 && key.stage < stages && key.micro_batch >= 0 &&
           key.micro_batch < micro_batches() && key.slice >= 0 && key.slice < slices_of(key.micro_batch);
  }
  // Index of a contained key among all contained keys.
  std::size_t index(const Key& key) const {
    return static_cast<std::size_t>(key.stage * slices() + first_slice[key.micro_batch] + key.slice);
  }
};

// Ends each count before the first number that no compute action names, or only a single stray one. Adds a
// finding for what is cut off: Range, or Missing if no action lies beyond.
Extent find_extent(const Schedule& schedule, Findings& findings);

}  // namespace penstock::schedule
