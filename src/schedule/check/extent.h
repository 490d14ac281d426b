// SPDX-License-Identifier: Apache-2.0
// The part of a schedule's numbers that the other rules look at: stages, micro-batches and slices count from
// 0 without gaps. Memory and time follow the number of actions, whatever numbers these name.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/check/findings.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

struct Extent {
  int stages = 0;
  std::vector<std::int64_t> first_slice{0};  // of each micro-batch among all slices; one more at the end

  int micro_batches() const { return static_cast<int>(first_slice.size()) - 1; }
  std::int64_t slices() const { return first_slice.back(); }  // of all micro-batches
  int slices_of(int micro_batch) const {
    return static_cast<int>(first_slice[micro_batch + 1] - first_slice[micro_batch]);
  }
  bool contains(const Key& key) const {
    return key.stage >= 0 && key.stage < stages && key.micro_batch >= 0 &&
           key.micro_batch < micro_batches() && key.slice >= 0 && key.slice < slices_of(key.micro_batch);
  }
  // Of a key that it contains, among all of them.
  std::size_t index(const Key& key) const {
    return static_cast<std::size_t>(key.stage * slices() + first_slice[key.micro_batch] + key.slice);
  }
};

// Ends each count before the first number that no compute action names, or that a single stray one names, and
// adds a finding (Range, or Missing when nothing lies beyond) for what is cut off.
Extent find_extent(const Schedule& schedule, Findings& findings);

}  // namespace penstock::schedule
