// SPDX-License-Identifier: Apache-2.0
// Splits an op's work into segments, layer by layer; between segments its device serves others. In each layer
// the products are 4 segments (8 for a whole B) and the attention one or more chunks.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/costs/costs.h"

namespace penstock::sim {

struct Segment {
  enum class What : std::uint8_t {
    Work,
    Attention,    // also work
    PostKeys,     // starts sending the keys and values of this layer's requests
    PostQueries,  // sends the queries, which completes the requests
    Merge,        // waits for the replies
  };
  What what = What::Work;
  Seconds seconds = 0;
};

// For compute ops. `away`: share of its attention that others compute.
std::vector<Segment> segments_of(const Costs& costs, int device, std::uint32_t index, const schedule::Op& op,
                                 double away);

// The time of a share of the attention in one layer, with layers as in segments_of().
Seconds seconds_of_layer(const AttentionShare& attention, double share);

// Number of layers that segments_of() distinguishes: the stage's, up to a small maximum.
int simulated_layers(const AttentionShare& share);

}  // namespace penstock::sim
