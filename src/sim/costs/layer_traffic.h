// SPDX-License-Identifier: Apache-2.0
// The traffic inside a layer: seconds that its tensor, context and expert ranks exchange for one slice.
#pragma once

#include "sim/costs/layer_site.h"

namespace penstock::sim {

// One all-gather of the hidden state among the tensor ranks: the part that computation does not hide.
Seconds tensor_pass(const Site& site);

// One reduce-scatter of it. A rank of several logical shards sends their sums unrounded.
Seconds scatter_pass(const Site& site);

struct ContextTraffic {
  Seconds forward, backward;
  Seconds again;  // a recomputed forward, whose keys and values are still there
};
ContextTraffic context_traffic(const Site& site);

// All-to-all of tokens to their experts and back, in one pass.
Seconds expert_traffic(const Site& site);

}  // namespace penstock::sim
