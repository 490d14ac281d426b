// SPDX-License-Identifier: Apache-2.0
// How long does a piece of work take, on a machine that others may use too? It is repeated, and the median
// counts. Of repeats in which the operating system took the core away from this thread, the processor time of
// the thread stands for their duration.
#pragma once

#include <functional>

#include "base/units.h"

namespace penstock::profile {

struct Effort {
  Seconds budget = 0.15;  // for the repeats of one figure
  int least = 5;          // repeats, whatever they take
  int most = 200;
};

struct Sample {
  Seconds seconds = 0;  // median
  double spread = 0;    // from the first to the third quartile, of the median
  int repeats = 0;
  int disturbed = 0;  // of them
};

// Runs the work once before, to warm up.
Sample measure(const std::function<void()>& work, const Effort& effort = {});

}  // namespace penstock::profile
