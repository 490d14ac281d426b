// SPDX-License-Identifier: Apache-2.0
// Times a piece of work on a machine that may be shared: the median of several repeats. A repeat in which the
// operating system preempted this thread counts with the thread's CPU time instead.
#pragma once

#include <functional>

#include "base/units.h"

namespace penstock::profile {

struct Effort {
  Seconds budget = 0.15;  // for all repeats of one figure
  int least = 5;          // minimum number of repeats, regardless of budget
  // After this time two repeats are enough: long ones vary less, and would take most of a profile's time.
  Seconds enough = 0.2;
  int most = 200;  // maximum number of repeats; 1: without warm-up
  // Since the profile began. After it figures get a third of the budget, after 5/3 of it a single repeat.
  Seconds late = 45;
  // The work waits for something other than a processor: disturbed repeats count as they are.
  bool waits = false;

  bool once() const { return most == 1; }
};

struct Sample {
  Seconds seconds = 0;  // median; mean of two repeats
  double spread = 0;    // interquartile range over the median
  int repeats = 0;
  int disturbed = 0;  // number of disturbed repeats
};

// Everything once and without warm-up: figures of every kind, none of them accurate.
inline constexpr Effort kOnce{.budget = 0, .least = 1, .most = 1};

// Runs the work once first as warm-up, unless `most` is 1.
Sample measure(const std::function<void()>& work, const Effort& effort = {});

}  // namespace penstock::profile
