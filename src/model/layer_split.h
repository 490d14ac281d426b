// SPDX-License-Identifier: Apache-2.0
// Layers of stages that also hold the embedding or the output layer.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock::model {

// Layers of each stage, at least one, such that the greatest stage takes the least time: each layer goes to
// the stage that takes the least with it, of several to the device with the least so far, then to the first.
// `beyond` is the work of each stage beyond its layers, in layers; `devices` is each stage's; `slowness` how
// many times as long each device takes for a layer, empty: all alike. Optimal, since the layers of a stage
// take equal times.
std::vector<std::int64_t> level_layers(std::int64_t layers, const std::vector<double>& beyond,
                                       const std::vector<int>& devices,
                                       const std::vector<double>& slowness = {});

// The last stage's layers in that split where it alone has work beyond its layers; in constant time.
std::int64_t last_stage_layers(std::int64_t layers, std::int64_t stages, double beyond);

}  // namespace penstock::model
