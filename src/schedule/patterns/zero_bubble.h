// SPDX-License-Identifier: Apache-2.0
// The handcrafted zero-bubble schedules (Qi et al. 2023): 1F1B with split backwards, where W fills the
// bubbles. ZB-H1 and ZB-H2 differ in how far the first device runs ahead.
#pragma once

#include "schedule/request.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

// Device r runs 1 + lead·(p-r-1) forwards before its first I, and its W follow their I with a lag of lead·r.
// So every device has at most 1 + lead·(p-1) micro-batches between F and W.
Schedule zero_bubble(const Request& request, int lead);

}  // namespace penstock::schedule
