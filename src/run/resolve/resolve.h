// SPDX-License-Identifier: Apache-2.0
// Turns options into a fully resolved run.
#pragma once

#include "run/run.h"

namespace penstock::run {

// Settles the options, generates or reads the schedule, resolves every "auto", lowers the schedule and
// predicts memory. Throws a one-line InputError for impossible settings, with the option, its value and the
// valid ones; NoAnswer if schedule.file holds an illegal schedule, or no choice for "auto" fits memory.limit.
// Accepts settings that `train` does not support yet (train/trainable.h).
Run resolve(Options options, const Machine& machine = {});

// Whether a choice depends on machine.hardware.
bool chooses_by_speed(const Options& options);

// Throws what resolve() would throw of settings that no choice mends: call it before slow work such as
// measuring the machine. Does nothing if slices or chunks are still to be chosen.
void require_possible(Options options);

// resolve() without choices, program and prediction: "auto" means policy none, no offload and no exchange.
Run lay_out(Options options, const Machine& machine);

// Throws InputError unless the mesh needs exactly `ranks` processes or threads.
void check_ranks(const Run& run, std::int64_t ranks);

}  // namespace penstock::run
