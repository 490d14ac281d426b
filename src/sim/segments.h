// SPDX-License-Identifier: Apache-2.0
// The stretches of work of an op between two moments at which its device serves others, layer by layer: the
// products in quarters of half a layer, and the attention chunk by chunk.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/costs/costs.h"

namespace penstock::sim {

struct Segment {
  enum class What : std::uint8_t {
    Work,
    Attention,    // work too
    PostKeys,     // the owner's requests of this layer begin their way
    PostQueries,  // and have all they need
    Merge,        // waits for the replies
  };
  What what = What::Work;
  Seconds seconds = 0;
};

// `away`: the share of its attention that others compute; of a compute op.
std::vector<Segment> segments_of(const Costs& costs, int device, std::uint32_t index, const schedule::Op& op,
                                 double away);

// What such a share of the attention takes in one layer as segments_of counts them.
Seconds seconds_of_layer(const AttentionShare& attention, double share);

// Layers that segments_of tells apart: the stage's, but few of many.
int simulated_layers(const AttentionShare& share);

}  // namespace penstock::sim
