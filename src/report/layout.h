// SPDX-License-Identifier: Apache-2.0
// Start times of the actions of a schedule if every kind takes a fixed time and transfers take none, as in
// the papers' figures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace penstock::report {

// In whole units of any length, each at least 1.
struct UnitTimes {
  int forward = 1;
  int backward = 2;
  int input = 1;
  int weight = 1;
  int reduction = 1;

  int of(schedule::Kind kind) const;  // 0 for idle cells
};

std::string describe(const UnitTimes& times);  // "F = 1, B = 2, I = 1, W = 1"

struct Cell {
  schedule::Action action;
  int position = 0;  // in the device's row
  std::int64_t start = 0;
  std::int64_t end = 0;
};

struct Layout {
  std::vector<std::vector<Cell>> devices;  // actions in order; idle cells are left out
  std::int64_t end = 0;                    // end of the last action
  bool in_time = true;                     // otherwise a cell starts at its position and takes one unit
};

// Places every action as early as its device and its dependencies allow; the second of an overlapped pair
// follows the first. A schedule that cannot run to its end (deadlock, misorder) is laid out by position.
Layout lay_out(const schedule::Schedule& schedule, const UnitTimes& times = {});

Layout lay_out_by_position(const schedule::Schedule& schedule);

}  // namespace penstock::report
