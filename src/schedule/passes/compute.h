// SPDX-License-Identifier: Apache-2.0
// The first pass: a schedule's compute actions as ops.
#pragma once

#include "schedule/program.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

// Law: each device's ops are its F, B, I and W, in order. Idle cells vanish (the order says it all), the two
// halves of an OVERLAP_F_B pair follow each other, and REDUCE_GRAD cells are dropped: add_gradient_sync
// decides about those.
Program compute_only(const Schedule& schedule);

}  // namespace penstock::schedule
