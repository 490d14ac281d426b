// SPDX-License-Identifier: Apache-2.0
// Settings of the passes that lower a run's schedule: bytes of transfers, copies and collectives.
#pragma once

#include "run/run.h"
#include "schedule/passes/lower.h"

namespace penstock::run {

// `slices` belong to the schedule to be lowered: an evaluation's slices differ from a step's. The run needs
// no program and outlives the result.
schedule::Lowering lowering_of(const Run& run, const Cuts& slices);

// One training step.
schedule::Program program_of(const Run& run);

// Forwards of one batch, for evaluation: no gradients, copies or exchange. Its slices are cuts_of(options,
// program.slices).
schedule::Program evaluation_of(const Run& run);

}  // namespace penstock::run
