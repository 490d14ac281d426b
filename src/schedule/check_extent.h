// SPDX-License-Identifier: Apache-2.0
// The part of a schedule's numbers that the other rules look at: stages, micro-batches and slices count from
// 0 without gaps. Memory and time follow the number of actions, whatever numbers these name.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/check_findings.h"
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
  bool contains(const Action& action) const {
    return action.stage >= 0 && action.stage < stages && action.micro_batch >= 0 &&
           action.micro_batch < micro_batches() && action.slice >= 0 &&
           action.slice < slices_of(action.micro_batch);
  }
};

// Ends each count before the first number that no compute action names, or that a single stray one names, and
// adds a finding (Range, or Missing when nothing lies beyond) for what is cut off.
Extent find_extent(const Schedule& schedule, Findings& findings);

}  // namespace penstock::schedule
