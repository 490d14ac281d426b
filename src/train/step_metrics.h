// SPDX-License-Identifier: Apache-2.0
// What the records of a run take from the report of a step.
#pragma once

#include "train/record/metrics.h"
#include "train/step/trainer.h"

namespace penstock::train {

// Without what the report does not know: number, tokens, rates, times of ranks, the start.
StepMetrics metrics_of(const StepReport& report);

// What a summary tells of the last step.
void take_last_step(Summary& summary, const StepReport& report);

}  // namespace penstock::train
