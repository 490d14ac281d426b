// SPDX-License-Identifier: Apache-2.0
// The layers of each stage, and what each layer keeps.
#pragma once

#include <cstdint>
#include <vector>

#include "run/run.h"

namespace penstock::run {

// Sets layers, their note and keep from the options, the schedule and the exchange. Without parallel.layers
// the greatest time of a stage is the least possible: forward and backward of a micro-batch, with embedding
// and output layer, by the analytic costs at the speeds of assumed_hardware, so that a run is split alike on
// every machine. Exchange and parallel.layers = "even" split evenly. Throws InputError for layers that do not
// add up.
void split_layers(Run& run);

// The layers of each stage such that the slowest takes the least time, when the devices take so many times as
// long for equal work; empty: all alike.
std::vector<std::int64_t> levelled_layers(const Run& run, const std::vector<double>& slowness);

}  // namespace penstock::run
