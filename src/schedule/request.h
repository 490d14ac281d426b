// SPDX-License-Identifier: Apache-2.0
// The sizes of a schedule to generate, and the costs to generate it for. Symbols as in the papers.
#pragma once

#include <vector>

#include "base/units.h"

namespace penstock::schedule {

// Per stage, for whole micro-batches; used by generators that take costs (greedy).
struct StageCosts {
  std::vector<Seconds> forward, input, weight;  // F, I and W; one value: all stages; empty: 1 second each
  Seconds transfer = 0;                         // a pure delay between devices
  // Record size per stage, held from F to W, and the limit of their sum on a device. Empty: 1 each, so that
  // the limit counts records. Limit 0: what 1F1B's first device holds, p records of each of its stages.
  std::vector<Bytes> record;
  Bytes limit = 0;

  bool operator==(const StageCosts&) const = default;
};

struct Request {
  int devices = 1;                  // p
  std::vector<int> slices{1};       // n, one per micro-batch; its size is m
  int chunks = 0;                   // v, stages per device; 0: the schedule's default
  int group = 0;                    // slices per group of interleaved slimpipe; 0: automatic
  double transfer_in_forwards = 0;  // transfer time in forwards, for automatic choices; 0: unknown
  StageCosts costs = {};

  int micro_batches() const { return static_cast<int>(slices.size()); }
};

}  // namespace penstock::schedule
