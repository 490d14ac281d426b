// SPDX-License-Identifier: Apache-2.0
// One decoder layer: x + attention(norm(x)), then that + feed_forward(norm(that)). The residual stream is
// rounded to the compute type at every sum, so bits do not depend on where stages are cut.
#pragma once

#include "nn/attention_block.h"
#include "nn/feed_forward.h"

namespace penstock::nn {

struct DecoderLayer {
  AttentionBlock attention;
  FeedForward feed_forward;
  Parameter* input_norm = nullptr;
  Parameter* post_attention_norm = nullptr;
  double norm_epsilon = 1e-5;
};

// input [N, h] → [N, h]; fills the record. `helpers` may be null; otherwise they take their part of the
// attention.
at::Tensor layer_forward(const DecoderLayer& layer, const at::Tensor& input, const SlicePlace& place,
                         EarlierSlices earlier, LayerRecord& record, AttentionHelpers* helpers = nullptr);

// grad_output [N, h] → the gradient of the input. Adds the gradients of the norms' weights, and appends the
// products that give the matrices' gradients; the record is used up. Tensors that were dropped from it are
// formed again first, against the earlier slices' keys and values, which are alive since slices go backward
// last to first. grad_output is kept by `pending`.
at::Tensor layer_backward_input(const DecoderLayer& layer, const at::Tensor& grad_output,
                                const SlicePlace& place, EarlierSlices earlier, LayerRecord record,
                                WeightRecord& pending, AttentionHelpers* helpers = nullptr);

// Forms the pending weight gradients, in order, and frees them.
void layer_backward_weight(WeightRecord pending);

}  // namespace penstock::nn
