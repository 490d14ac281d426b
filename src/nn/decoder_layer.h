// SPDX-License-Identifier: Apache-2.0
// One decoder layer: y = x + attention(norm(x)), then y + feed_forward(norm(y)). The residual stream is
// rounded to the compute type at every sum, so bits do not depend on the stage boundaries.
//
// A rank computes its shards of the layer (tensor_group.h): norms and residual stream use each shard's rows;
// heads and ffn columns use all rows, gathered before the products and summed after them. Experts work on
// each shard's rows.
#pragma once

#include <span>

#include "nn/attention_block.h"
#include "nn/feed_forward.h"
#include "nn/groups/tensor_group.h"

namespace penstock::nn {

struct LayerShard {
  AttentionBlock attention;
  FeedForward feed_forward;
  Mixture mixture;  // replaces feed_forward in layers with experts
  Parameter* input_norm = nullptr;
  Parameter* post_attention_norm = nullptr;
};

struct DecoderLayer {
  std::vector<LayerShard> shards;  // on this rank
  TensorGroup* group = nullptr;
  double norm_epsilon = 1e-5;

  bool has_experts() const { return shards.front().mixture.defined(); }
};

// The slice that a call works on, besides the layer's own records.
struct LayerCall {
  SlicePlace place;
  std::vector<std::vector<LayerRecord*>> earlier;  // per shard, newest slice first
  AttentionPartners* partners = nullptr;           // compute part of the attention; single shard only
  const RouteLosses* route_losses = nullptr;       // for the experts' backward; null: none
};

// Maps each shard's input rows [n, h] to its output rows, and fills the records.
Rows layer_forward(const DecoderLayer& layer, const Rows& input, const LayerCall& call,
                   LayerRecords& records);

// Maps the output gradient, each shard's rows, to the input gradient. Adds all weight gradients and consumes
// the records. First recomputes dropped tensors, using the earlier slices' keys and values, which are alive
// since slices run backward from last to first. Computes the feed-forward's weight products before attention,
// so that their operands and attention's are not alive together. Same bits as the two calls below.
Rows layer_backward(const DecoderLayer& layer, Rows grad_output, const LayerCall& call, LayerRecords records);

// The same, except that the matrices' weight products go to `pending`, which keeps grad_output, and the
// gathered rows until end_gathered().
Rows layer_backward_input(const DecoderLayer& layer, Rows grad_output, const LayerCall& call,
                          LayerRecords records, WeightRecord& pending);

// Computes the pending weight gradients of a slice of `tokens` tokens, in order, and frees their operands.
void layer_backward_weight(const DecoderLayer& layer, std::int64_t tokens, WeightRecord pending);

}  // namespace penstock::nn
