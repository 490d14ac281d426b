// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a group lie, and how long a collective among them takes. Ranks are numbered tensor
// fastest, then context, data, pipeline; node k holds ranks k·g .. k·g + g − 1. A group that does not fill
// its nodes evenly is as slow as its thinnest node: each member there drives its own share of the network.
#pragma once

#include "model/memory_terms.h"
#include "plan/hardware.h"

namespace penstock::plan {

struct Placement {
  int members = 1;
  bool one_node = true;
  int nodes = 1;
  int least_members = 1;  // on the node that has the fewest
};

// Ranks first, first + stride, ..., `members` of them.
Placement place(std::int64_t first, std::int64_t stride, int members, std::int64_t gpus_per_node);

// The groups of each kind at their worst place.
Placement tensor_group(const model::Spread& spread, std::int64_t gpus_per_node);
Placement context_group(const model::Spread& spread, std::int64_t gpus_per_node);
Placement expert_group(const model::Spread& spread, std::int64_t gpus_per_node);
Placement gradient_group(const model::Spread& spread, std::int64_t gpus_per_node);  // d·c ranks of one stage

// Seconds of one pass of a ring, in which each member receives all parts of a tensor of `bytes` but its own:
// an all-gather or a reduce-scatter; an all-reduce is two. `gradients` picks the network's efficiency.
Seconds ring_pass(const Hardware& hardware, const Placement& group, double bytes, bool gradients = false);

// Seconds of an all-to-all in which each member sends `bytes` in equal parts to all.
Seconds all_to_all(const Hardware& hardware, const Placement& group, double bytes);

// Seconds of a transfer of `bytes` from one stage to the next, from every rank of the stage at once.
Seconds stage_transfer(const Hardware& hardware, const model::Spread& spread, double bytes);

}  // namespace penstock::plan
