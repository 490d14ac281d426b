// SPDX-License-Identifier: Apache-2.0
#include "schedule/patterns/block.h"

namespace penstock::schedule {

std::vector<BlockStep> repeat(const Block& block, int micro_batches) {
  constexpr int kPeriod = 6;
  std::vector<BlockStep> steps;
  steps.reserve(kPasses * micro_batches);
  Block next = block;  // start of the next micro-batch of each pass
  const auto micro_batch = [&](int pass) { return (next[pass] - block[pass]) / kPeriod; };
  while (static_cast<int>(steps.size()) < kPasses * micro_batches) {
    int first = -1;
    for (int pass = 0; pass < kPasses; ++pass) {
      if (micro_batch(pass) < micro_batches && (first < 0 || next[pass] < next[first])) first = pass;
    }
    steps.push_back({static_cast<Pass>(first), micro_batch(first)});
    next[first] += kPeriod;
  }
  return steps;
}

}  // namespace penstock::schedule
