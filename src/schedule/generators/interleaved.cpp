// SPDX-License-Identifier: Apache-2.0
// Interleaved 1F1B, Narayanan et al. 2021, with rounds of k >= p micro-batches as in PyTorch.
// In flight: min(m·v, (v-1)k + 2(p-r-1) + 1). Bubble: (p-1)/(m·v + p-1) of the step for m >= p.
#include "schedule/generators/catalogue.h"
#include "schedule/patterns/rounds.h"

namespace penstock::schedule {

Schedule interleaved(const Request& request) { return interleave_in_rounds(request, "interleaved"); }

}  // namespace penstock::schedule
