// SPDX-License-Identifier: Apache-2.0
// The schedule of an evaluation: forwards alone, with the stages where a training schedule has them.
#pragma once

#include "schedule/schedule.h"

namespace penstock::schedule {

// `micro_batches` forwards through all stages of `like`, each in as many slices as the first micro-batch
// there. Items go in groups of as many as there are devices, stage after stage: a legal order for every
// placement that keeps all devices of a loop busy. Every stage must live on one device.
Schedule forward_only(const Schedule& like, int micro_batches);

// The forwards of the schedule itself, in its order: where devices keep step in it, they do so here.
Schedule forwards_of(const Schedule& schedule);

}  // namespace penstock::schedule
