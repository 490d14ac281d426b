// SPDX-License-Identifier: Apache-2.0
// Evaluation schedules: forwards only, with the stage placement of a training schedule.
#pragma once

#include "schedule/program.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

// Returns `micro_batches` forwards through all stages of `like`, each with as many slices as its first
// micro-batch. Items run in groups of p (the number of devices), stage by stage: this order is legal for
// every placement and keeps all devices of a loop busy. Every stage must live on one device.
Schedule forward_only(const Schedule& like, int micro_batches);

// Adds back-pressure to the lowered program of a forward_only schedule: no device runs more than one group
// ahead of its receivers. Without backwards nothing else would stop a fast device, and its messages would
// pile up. A group's first F waits for all sends of the group before, that is, until the receivers have room
// for them. That is never later than when the receivers finish that group, so this adds no deadlock.
Program with_back_pressure(const Program& evaluation);

// Returns the schedule with only its forwards, in their order. Devices in lock step stay in lock step.
Schedule forwards_of(const Schedule& schedule);

}  // namespace penstock::schedule
