// SPDX-License-Identifier: Apache-2.0
// One shard's columns of the gated feed-forward block, down(silu(gate(x)) · up(x)). The layer computes its
// products (decoder_layer.h), since it splits their rows.
#pragma once

#include "nn/record.h"

namespace penstock::nn {

struct FeedForward {
  Parameter* gate = nullptr;
  Parameter* up = nullptr;
  Parameter* down = nullptr;
};

struct GateGradients {
  at::Tensor gate, up;  // [N, f]
};

// Computes Product from Gate and Up.
void activate(LayerRecord& record);

// Returns the gradients of Gate and Up, which take over the memory of Gate and Up from the record. A missing
// Product is computed in the same pass, in the memory of grad_product.
GateGradients activate_backward(at::Tensor grad_product, LayerRecord& record);

}  // namespace penstock::nn
