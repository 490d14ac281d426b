// SPDX-License-Identifier: Apache-2.0
// The first pass: turns a schedule's compute actions into ops.
#pragma once

#include "schedule/program.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

// Law: each device's ops are its F, B, I and W, in order. Idle cells are dropped (the order is enough), the
// two actions of an OVERLAP_F_B pair follow each other, and REDUCE_GRAD cells are dropped: add_gradient_sync
// adds its own.
Program compute_only(const Schedule& schedule);

}  // namespace penstock::schedule
