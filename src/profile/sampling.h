// SPDX-License-Identifier: Apache-2.0
// Times a piece of work on a machine that may be shared: the median of several repeats. Repeats in which the
// operating system preempted this thread count with the thread's CPU time instead.
#pragma once

#include <functional>

#include "base/units.h"

namespace penstock::profile {

struct Effort {
  Seconds budget = 0.15;  // for all repeats of one figure
  int least = 5;          // minimum number of repeats, regardless of budget
  // After which two repeats are enough: long ones vary less, and would take most of a profile's time.
  Seconds enough = 0.2;
  int most = 200;  // 1: the work once, not warmed up
  // Since the profile began: later figures get a third of the budget, and after 5/3 of this one repeat.
  Seconds late = 45;
};

struct Sample {
  Seconds seconds = 0;  // median; of two repeats the mean
  double spread = 0;    // interquartile range over the median
  int repeats = 0;
  int disturbed = 0;  // number of disturbed repeats
};

// Everything once and cold: figures of every kind, none of them good.
inline constexpr Effort kOnce{.budget = 0, .least = 1, .most = 1};

// Runs the work once first, to warm up, unless it is done once alone.
Sample measure(const std::function<void()>& work, const Effort& effort = {});

}  // namespace penstock::profile
