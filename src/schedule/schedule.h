// SPDX-License-Identifier: Apache-2.0
// A schedule is a value: for each device the list of what it computes, in order. It knows no times and no
// transfers; passes turn it into a Program (program.h).
#pragma once

#include <string>
#include <vector>

#include "schedule/action.h"

namespace penstock::schedule {

struct Schedule {
  std::string name;         // the generator's, or the file's
  int stages = 0;           // S, numbered 0..S-1 through the whole model
  std::vector<int> slices;  // n of each micro-batch; its size is m
  std::vector<std::vector<Action>> devices;

  int device_count() const { return static_cast<int>(devices.size()); }
  int micro_batches() const { return static_cast<int>(slices.size()); }

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// Some micro-batch has more than one slice, so tokens carry slice numbers.
inline bool is_sliced(const Schedule& schedule) {
  for (const int n : schedule.slices) {
    if (n != 1) return true;
  }
  return false;
}

}  // namespace penstock::schedule
