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

// Computes Gate and Up from Norm2Output where the record lacks them.
void expand(const FeedForward& block, LayerRecord& record);

// Computes Product from Gate and Up, and its down product, [N, h].
at::Tensor feed_forward_output(const FeedForward& block, LayerRecord& record);

// grad_output [N, h] → the gradient of Norm2Output [N, h]; appends the three weight products. Reads Gate, Up
// and Norm2Output, and Product; a missing Product is computed in the same pass as the gradients.
at::Tensor feed_forward_backward_input(const FeedForward& block, const at::Tensor& grad_output,
                                       LayerRecord& record, WeightRecord& pending);

}  // namespace penstock::nn
