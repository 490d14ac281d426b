// SPDX-License-Identifier: Apache-2.0
// Seq1F1B, Sun et al. 2024: 1F1B whose unit is a slice; all n slices of a micro-batch run forward before its
// last slice starts the backwards. In flight: min(m·n, n + p-r-1). Bubble: (p-1)/(m·n + p-1) of the step.
#include "schedule/generators/catalogue.h"

namespace penstock::schedule {

Schedule seq1f1b(const Request& request) { return one_f_one_b(request); }

}  // namespace penstock::schedule
