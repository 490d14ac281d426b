// SPDX-License-Identifier: Apache-2.0
// ZB-H1, Qi et al. 2023. In flight until W: min(m, p) on every device. Idle: (p-1)(F + I - W) for m >= p; at
// unit times (p-1) + max(0, p-m).
#include "schedule/generators/catalogue.h"
#include "schedule/patterns/zero_bubble.h"

namespace penstock::schedule {

Schedule zb_h1(const Request& request) { return zero_bubble(request, 1); }

}  // namespace penstock::schedule
