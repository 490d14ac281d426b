// SPDX-License-Identifier: Apache-2.0
// ZB-H2, Qi et al. 2023. In flight until W: min(m, 2p-1) on every device. Idle within a device's span:
// (p-1)(F + I - 2W) for m >= 2p-1; at unit times max(0, 2p-1-m).
#include "schedule/generators/catalogue.h"
#include "schedule/patterns/zero_bubble.h"

namespace penstock::schedule {

Schedule zb_h2(const Request& request) { return zero_bubble(request, 2); }

}  // namespace penstock::schedule
