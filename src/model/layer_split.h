// SPDX-License-Identifier: Apache-2.0
// Splits layers over stages that may also hold the embedding or the output layer.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock::model {

// Layers per stage, at least one, that minimise the time of the slowest stage: each layer goes to the stage
// that would then take the least time; ties go to the device with the least time so far, then to the first
// stage. Optimal, since the layers of a stage take equal times. `beyond`: per stage, its other work in units
// of layers. `devices`: the device of each stage. `slowness`: per device, its relative time per layer; empty:
// all equal.
std::vector<std::int64_t> level_layers(std::int64_t layers, const std::vector<double>& beyond,
                                       const std::vector<int>& devices,
                                       const std::vector<double>& slowness = {});

// The last stage's layers in that split if only it has other work (`beyond`). Constant time.
std::int64_t last_stage_layers(std::int64_t layers, std::int64_t stages, double beyond);

}  // namespace penstock::model
