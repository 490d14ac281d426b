// SPDX-License-Identifier: Apache-2.0
// The sizes of a schedule to generate. Symbols as in the papers.
#pragma once

#include <vector>

namespace penstock::schedule {

struct Request {
  int devices = 1;             // p
  std::vector<int> slices{1};  // n of each micro-batch; its size is m
  int chunks = 0;              // v, stages per device; 0: the schedule's own default
  int group = 0;               // slices per group of interleaved slimpipe; 0: automatic
  double latency = 0;          // of a transfer, in forwards, for automatic choices; 0: not known

  int micro_batches() const { return static_cast<int>(slices.size()); }
};

}  // namespace penstock::schedule
