// SPDX-License-Identifier: Apache-2.0
// Copies a step's report into the records of a run.
#pragma once

#include "train/record/metrics.h"
#include "train/step/trainer.h"

namespace penstock::train {

// Sets only what the report has: number, tokens, rates, rank times and start stay unset.
StepMetrics metrics_of(const StepReport& report);

// Sets the summary's members for the last step.
void take_last_step(Summary& summary, const StepReport& report);

}  // namespace penstock::train
