// SPDX-License-Identifier: Apache-2.0
// Which of a window's samples share a micro-batch and a replica (docs/data.md, "Packing").
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace penstock::train {

// How a batch of samples is shared out, in order: over the replicas, and there over micro-batches.
struct BatchShares {
  std::int64_t batch = 1;
  std::int64_t replicas = 1;
  std::int64_t micro_batch = 1;
};

// The samples drawn as `first`, first + 1, ... have such works. Shares them out so that the greatest work of
// a replica's part of a batch is small, and in it that of a micro-batch: the greatest work first, each to the
// part with the least so far that has room. Returns the sample, counted from `first`, for each draw.
std::vector<std::int64_t> balanced(std::int64_t first, std::span<const double> work,
                                   const BatchShares& shares);

}  // namespace penstock::train
