// SPDX-License-Identifier: Apache-2.0
// The schedule of an evaluation: forwards alone, with the stages where a training schedule has them.
#pragma once

#include "schedule/program.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

// `micro_batches` forwards through all stages of `like`, each in as many slices as the first micro-batch
// there. Items go in groups of as many as there are devices, stage after stage: a legal order for every
// placement that keeps all devices of a loop busy. Every stage must live on one device.
Schedule forward_only(const Schedule& like, int micro_batches);

// The lowered program of a forward_only schedule in which no device runs ahead of those that it sends to by
// more than a group: without a backward nothing else would stop a fast one, and its messages would pile up. A
// group begins when the receivers of the one before have room for all of it, which is never later than when
// they are through with it: so no circle of waits comes about.
Program with_back_pressure(const Program& evaluation);

// The forwards of the schedule itself, in its order: where devices keep step in it, they do so here.
Schedule forwards_of(const Schedule& schedule);

}  // namespace penstock::schedule
