// SPDX-License-Identifier: Apache-2.0
// The gated feed-forward block: down(silu(gate(x)) · up(x)).
#pragma once

#include "nn/record.h"

namespace penstock::nn {

struct FeedForward {
  Parameter* gate = nullptr;
  Parameter* up = nullptr;
  Parameter* down = nullptr;
};

// Reads Norm2Output; fills Gate, Up, Product; returns [N, h].
at::Tensor feed_forward(const FeedForward& block, LayerRecord& record);

// grad_output [N, h] → the gradient of Norm2Output [N, h]; appends the three weight products.
at::Tensor feed_forward_backward_input(const FeedForward& block, const at::Tensor& grad_output,
                                       const LayerRecord& record, WeightRecord& pending);

}  // namespace penstock::nn
