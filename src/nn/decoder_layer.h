// SPDX-License-Identifier: Apache-2.0
// One decoder layer: x + attention(norm(x)), then that + feed_forward(norm(that)). The residual stream is
// rounded to the compute type at every sum, so bits do not depend on the stage boundaries.
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

// input [N, h] → [N, h]; fills the record. `partners` may be null; otherwise they compute their part of the
// attention.
at::Tensor layer_forward(const DecoderLayer& layer, const at::Tensor& input, const SlicePlace& place,
                         EarlierSlices earlier, LayerRecord& record, AttentionPartners* partners = nullptr);

// grad_output [N, h] → the gradient of the input. Adds the gradients of the norms' weights, appends the
// matrices' weight products, and consumes the record. Dropped tensors are recomputed first, from the earlier
// slices' keys and values, which are alive since slices run backward from last to first. `pending` keeps
// grad_output.
at::Tensor layer_backward_input(const DecoderLayer& layer, const at::Tensor& grad_output,
                                const SlicePlace& place, EarlierSlices earlier, LayerRecord record,
                                WeightRecord& pending, AttentionPartners* partners = nullptr);

// Computes the pending weight gradients, in order, and frees them.
void layer_backward_weight(WeightRecord pending);

}  // namespace penstock::nn
