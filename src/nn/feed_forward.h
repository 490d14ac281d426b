// SPDX-License-Identifier: Apache-2.0
// One shard's columns of the gated feed-forward block, down(silu(gate(x)) · up(x)). Its products are the
// layer's (decoder_layer.h), since their rows are shared out.
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

// Fills in Product from Gate and Up.
void activate(LayerRecord& record);

// The gradient of Product to those of Gate and Up, whose memory they take over from the record; a missing
// Product is computed in the same pass, in the gradient's.
GateGradients activate_backward(at::Tensor grad_product, LayerRecord& record);

}  // namespace penstock::nn
