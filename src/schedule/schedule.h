// SPDX-License-Identifier: Apache-2.0
// A schedule: the ordered list of compute actions of each device. It has no times and no transfers; passes
// lower it to a Program (program.h).
#pragma once

#include <string>
#include <vector>

#include "schedule/action.h"

namespace penstock::schedule {

struct Schedule {
  std::string name;         // the generator's or the file's
  int stages = 0;           // S, numbered 0..S-1 across the whole model
  std::vector<int> slices;  // n, one per micro-batch; its size is m
  std::vector<std::vector<Action>> devices;

  int device_count() const { return static_cast<int>(devices.size()); }
  int micro_batches() const { return static_cast<int>(slices.size()); }

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// True if a micro-batch has more than one slice; tokens then have slice numbers.
inline bool is_sliced(const Schedule& schedule) {
  for (const int n : schedule.slices) {
    if (n != 1) return true;
  }
  return false;
}

}  // namespace penstock::schedule
