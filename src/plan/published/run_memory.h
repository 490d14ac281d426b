// SPDX-License-Identifier: Apache-2.0
// Bytes that a published run needs on its fullest device, from formulas alone: nothing is fitted.
#pragma once

#include "plan/published/timed_cases.h"

namespace penstock::plan {

struct RunMemory {
  double states = 0;   // weights, gradients, masters and moments
  double records = 0;  // what is kept for the backward, at its most
  double working = 0;  // a layer's recomputed tensors, or its gathered weights
  double logits = 0;   // and their gradient, in 32 bits; each in 16 too

  double total() const { return states + records + working + logits; }
};
RunMemory run_memory(const Workload& workload, const Layout& layout);

// Does it fit the card, whatever else needs room there?
bool fits(const RunMemory& memory, const sim::Hardware& hardware);

}  // namespace penstock::plan
