// SPDX-License-Identifier: Apache-2.0
// The weight gradients of one layer for a slice of `tokens` tokens: computes the pending products in order
// and frees their operands.
#pragma once

#include "nn/decoder_layer.h"

namespace penstock::nn {

// Gate, up and down, or the experts.
void form_feed_forward_products(const DecoderLayer& layer, std::int64_t tokens, WeightRecord& pending);

// Query, key, value and output projections.
void form_attention_products(const DecoderLayer& layer, std::int64_t tokens, WeightRecord& pending);

}  // namespace penstock::nn
