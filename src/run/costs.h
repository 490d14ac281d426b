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

// Without options.copy_rate copies go at the speed of where the run's records go; at the host's where the
// hardware does not say how quick its disk is.
sim::AnalyticCosts costs_of(const Run& run, const sim::Hardware& hardware, sim::AnalyticOptions options = {});

// What the backward actions of one device take in a step, on the machine of assumed_hardware: a measure of
// their work. `documents`: of the step's micro-batches, which the run's slices cut; empty without.
Seconds backward_seconds(const Run& run, const std::vector<model::Documents>& documents, int device);

}  // namespace penstock::run
