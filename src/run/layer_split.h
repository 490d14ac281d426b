// SPDX-License-Identifier: Apache-2.0
// The layers of each stage, and what each layer keeps.
#pragma once

#include <cstdint>
#include <vector>

#include "run/run.h"

namespace penstock::run {

// Sets layers, their note and keep from the options, the schedule and the exchange. Without parallel.layers,
// minimises the slowest stage's time: forward and backward of a micro-batch, with embedding and output layer,
// by the analytic costs on assumed_hardware, so that a run has the same split on every machine. Exchange and
// parallel.layers = "even" split evenly. Throws InputError for layers that do not add up.
void split_layers(Run& run);

// Layers per stage that minimise the slowest stage's time. `slowness`: per device, its relative time for
// equal work; empty: all equal.
std::vector<std::int64_t> levelled_layers(const Run& run, const std::vector<double>& slowness);

}  // namespace penstock::run
