// SPDX-License-Identifier: Apache-2.0
// The analytic costs of a run's program.
#pragma once

#include <vector>

#include "model/documents.h"
#include "run/run.h"
#include "sim/costs/analytic.h"

namespace penstock::run {

// The properties of the run that determine costs and bytes; needs no program.
sim::Work work_of(const Run& run);

// The default of options.copy_rate is the speed of the run's offload target; the host's if the hardware gives
// no disk speed.
sim::AnalyticCosts costs_of(const Run& run, const sim::Hardware& hardware, sim::AnalyticOptions options = {});

// Time of one device's backward ops in a step on assumed_hardware, as a measure of their work. `documents`:
// one entry per micro-batch of the step, cut by the run's slices; or empty.
Seconds backward_seconds(const Run& run, const std::vector<model::Documents>& documents, int device);

}  // namespace penstock::run
