// SPDX-License-Identifier: Apache-2.0
// Assigns a window's samples to micro-batches and replicas (docs/data.md, "Packing").
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace penstock::train {

// How a batch of samples is split, in order: over the replicas, then over their micro-batches.
struct BatchShares {
  std::int64_t batch = 1;
  std::int64_t replicas = 1;
  std::int64_t micro_batch = 1;
};

// `work` is the work of the samples drawn as `first`, first + 1, ... Distributes them so that the largest
// work of a replica's part of a batch is small, and within it that of a micro-batch: largest work first, each
// to the part with the least so far that has room, of several to those of a random batch. Returns for each
// draw the sample, counted from `first`.
std::vector<std::int64_t> balanced(std::int64_t first, std::span<const double> work,
                                   const BatchShares& shares);

}  // namespace penstock::train
