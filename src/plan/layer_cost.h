// SPDX-License-Identifier: Apache-2.0
// Seconds of one layer for one slice, term by term.
#pragma once

#include "plan/engine.h"
#include "plan/hardware.h"
#include "plan/layout.h"

namespace penstock::plan {

struct LayerTerms {
  Seconds matrix = 0;       // products with weights
  Seconds attention = 0;    // softmax(QKᵀ)V
  Seconds elementwise = 0;  // norms, rotation, SwiGLU, residual sums
  Seconds tensor = 0;       // tensor-parallel collectives, as far as they show
  Seconds context = 0;      // context-parallel collectives
  Seconds expert = 0;       // all-to-all to the experts and back
  Seconds gaps = 0;         // between kernels, and waiting for the host

  Seconds total() const { return matrix + attention + elementwise + tensor + context + expert + gaps; }
  LayerTerms& operator+=(const LayerTerms& other);
};

struct LayerCost {
  LayerTerms forward;
  LayerTerms backward;   // without recomputation
  LayerTerms recompute;  // what the policy forms again
  Seconds weights = 0;   // of the backward, the products for the weights' gradients: what W does
};

// Attention of an average slice: causal, half of all keys.
LayerCost layer_cost(const Workload& workload, const Layout& layout, const Hardware& hardware,
                     const Engine& engine);

}  // namespace penstock::plan
