// SPDX-License-Identifier: Apache-2.0
// A decoder layer's parameters among those of its stage.
#pragma once

#include <span>

#include "nn/decoder_layer.h"
#include "nn/stage.h"

namespace penstock::nn {

// One shard's part of layer `number` of the model, of so many shards. Its rotary table and context group are
// the caller's to set.
LayerShard bind_layer(std::span<Parameter> parameters, const StageOptions& options, int shards,
                      std::int64_t number);

}  // namespace penstock::nn
