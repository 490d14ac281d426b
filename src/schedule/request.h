// SPDX-License-Identifier: Apache-2.0
// The sizes of a schedule to generate, and the costs that it is to be made for. Symbols as in the papers.
#pragma once

#include <vector>

#include "base/units.h"

namespace penstock::schedule {

// Of each stage, whole micro-batches; for schedules that are made for given costs (greedy).
struct StageCosts {
  std::vector<Seconds> forward, input, weight;  // of F, I and W; one for all stages; empty: 1 second each
  Seconds transfer = 0;                         // a pure delay between devices
  // What a device may hold from F to W: the sum of its records' sizes. Empty: 1 each, so that the limit
  // counts records. Limit 0: as much as 1F1B's first device holds, p records of each of its stages.
  std::vector<Bytes> record;
  Bytes limit = 0;

  bool operator==(const StageCosts&) const = default;
};

struct Request {
  int devices = 1;             // p
  std::vector<int> slices{1};  // n of each micro-batch; its size is m
  int chunks = 0;              // v, stages per device; 0: the schedule's own default
  int group = 0;               // slices per group of interleaved slimpipe; 0: automatic
  double latency = 0;          // of a transfer, in forwards, for automatic choices; 0: not known
  StageCosts costs = {};

  int micro_batches() const { return static_cast<int>(slices.size()); }
};

}  // namespace penstock::schedule
