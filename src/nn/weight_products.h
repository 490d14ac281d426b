// SPDX-License-Identifier: Apache-2.0
// The weight gradients of one layer and slice of so many tokens: forms the pending products, in their order,
// and frees their operands.
#pragma once

#include "nn/decoder_layer.h"

namespace penstock::nn {

// Those of gate, up and down, or of the experts.
void form_feed_forward_products(const DecoderLayer& layer, std::int64_t tokens, WeightRecord& pending);

// Those of queries, keys, values and their output.
void form_attention_products(const DecoderLayer& layer, std::int64_t tokens, WeightRecord& pending);

}  // namespace penstock::nn
