// SPDX-License-Identifier: Apache-2.0
// Bytes that a published run needs on its fullest device, from formulas alone, without fitted constants.
#pragma once

#include "plan/published/timed_cases.h"

namespace penstock::plan {

struct RunMemory {
  double states = 0;   // weights, gradients, masters and moments
  double records = 0;  // saved for the backward, at the peak
  double working = 0;  // a layer's recomputed tensors, or its gathered weights
  double logits = 0;   // 8 bytes per logit; 0 with a pipeline

  double total() const { return states + records + working + logits; }
};
RunMemory run_memory(const Workload& workload, const Layout& layout);

// Returns whether it fits the GPU, without room for anything else.
bool fits(const RunMemory& memory, const sim::Hardware& hardware);

}  // namespace penstock::plan
