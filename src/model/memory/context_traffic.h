// SPDX-License-Identifier: Apache-2.0
// The ways a context group can split a model's attention, and their traffic (docs/mesh.md, "Context ranks").
#pragma once

#include "model/memory/layer_shards.h"
#include "model/shape.h"

namespace penstock::model {

// Returns whether `ranks` ranks can split the heads: each has whole query heads and whole key heads, or a
// copy of one key head.
bool share_heads(const Shape& part, std::int64_t ranks);

// The largest divisor of `ranks`, below it, over which the heads can be split; 1 if there is no other.
std::int64_t mixed_heads(const Shape& part, std::int64_t ranks);

// Splits the heads over all ranks if possible, else over mixed_heads(); queries travel among the others.
// `part` is that of a logical shard.
ContextSplit automatic_split(const Shape& part, std::int64_t ranks);

// Bytes that a rank receives for one layer and slice, and the number of collectives: gathered or scattered
// among the ranks that split tokens, exchanged among the ranks that split heads.
struct ContextPass {
  double gathered = 0, exchanged = 0;
  int gathers = 0, exchanges = 0;

  double total() const { return gathered + exchanged; }
};
struct ContextTraffic {
  ContextPass forward, backward;
  ContextPass again;  // for a recomputed forward, which has keys and values

  double total() const { return forward.total() + backward.total(); }
};

// `part`: the rank's heads. `tokens`: per slice and rank. Excludes log-sum-exps and row sums.
ContextTraffic context_traffic(const Shape& part, const ContextSplit& split, double tokens, double element,
                               double accumulator);

}  // namespace penstock::model
