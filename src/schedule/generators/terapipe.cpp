// SPDX-License-Identifier: Apache-2.0
// TeraPipe, Li et al. 2021: GPipe whose unit is a slice; a micro-batch's slices run backward last to first.
// In flight: m·n. Bubble: (p-1)/(m·n + p-1) of the step.
#include "schedule/generators/catalogue.h"

namespace penstock::schedule {

Schedule terapipe(const Request& request) { return gpipe(request); }

}  // namespace penstock::schedule
