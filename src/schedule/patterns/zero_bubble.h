// SPDX-License-Identifier: Apache-2.0
// The handcrafted zero-bubble schedules, Qi et al. 2023: 1F1B with the backward split, where W fills what
// would be bubbles. ZB-H1 and ZB-H2 differ in how far the first device runs ahead.
#pragma once

#include "schedule/request.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

// Device r runs 1 + lead·(p-r-1) forwards before its first I, and its W trail its I by lead·r; so every
// device has at most 1 + lead·(p-1) micro-batches between F and W.
Schedule zero_bubble(const Request& request, int lead);

}  // namespace penstock::schedule
