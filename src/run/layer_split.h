// SPDX-License-Identifier: Apache-2.0
// The layers of each stage, and what each layer keeps.
#pragma once

#include "run/run.h"

namespace penstock::run {

// Sets layers, layers_note and keep from the options, the schedule and the exchange. Without parallel.layers
// the greatest time of a stage is the least possible: forward and backward of a micro-batch, with embedding
// and output layer, by the analytic costs at the speeds of assumed_hardware, so that a run is split alike on
// every machine. Exchange and parallel.layers = "even" split evenly. Throws InputError for layers that do not
// add up.
void split_layers(Run& run);

}  // namespace penstock::run
