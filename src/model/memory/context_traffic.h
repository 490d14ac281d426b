// SPDX-License-Identifier: Apache-2.0
// Ways in which a context group can share out a model's attention, and what each of them moves (docs/mesh.md,
// "Context ranks").
#pragma once

#include "model/memory/layer_shards.h"
#include "model/shape.h"

namespace penstock::model {

// Whether so many ranks can share out the heads: each has whole query heads, and whole key heads or one.
bool share_heads(const Shape& part, std::int64_t ranks);

// The most of the ranks that can, but not all; 1: none.
std::int64_t mixed_heads(const Shape& part, std::int64_t ranks);

// All ranks share out the heads if they can, else as many as can; queries travel among the others. `part`: of
// a logical shard.
ContextSplit automatic_split(const Shape& part, std::int64_t ranks);

// What a rank receives for one layer and slice, in bytes: gathered or scattered among the ranks that share
// out tokens, exchanged among those that share out heads; each in so many collectives.
struct ContextPass {
  double gathered = 0, exchanged = 0;
  int gathers = 0, exchanges = 0;

  double total() const { return gathered + exchanged; }
};
struct ContextTraffic {
  ContextPass forward, backward;
  ContextPass again;  // of a forward that is recomputed, whose keys and values are still there

  double total() const { return forward.total() + backward.total(); }
};

// `part`: the rank's heads. `tokens`: of the slice, on one rank. Without log-sum-exps and row sums.
ContextTraffic context_traffic(const Shape& part, const ContextSplit& split, double tokens, double element,
                               double accumulator);

}  // namespace penstock::model
