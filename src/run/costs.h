// SPDX-License-Identifier: Apache-2.0
// The analytic costs of a run's program.
#pragma once

#include "run/run.h"
#include "sim/costs/analytic.h"

namespace penstock::run {

// The properties of the run that determine costs and bytes; needs no program.
sim::Work work_of(const Run& run);

sim::AnalyticCosts costs_of(const Run& run, const sim::Hardware& hardware,
                            const sim::AnalyticOptions& options = {});

// What the backward actions of one device take in a step, on the machine of assumed_hardware: a measure of
// their work.
Seconds backward_seconds(const Run& run, int device);

}  // namespace penstock::run
