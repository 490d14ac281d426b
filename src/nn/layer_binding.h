// SPDX-License-Identifier: Apache-2.0
// Finds a decoder layer's parameters among those of its stage.
#pragma once

#include <span>

#include "nn/decoder_layer.h"
#include "nn/stage.h"

namespace penstock::nn {

// Returns one of `shards` shards of layer `number` of the model. The caller sets its rotary table and context
// group.
LayerShard bind_layer(std::span<Parameter> parameters, const StageOptions& options, int shards,
                      std::int64_t number);

}  // namespace penstock::nn
