// SPDX-License-Identifier: Apache-2.0
// One decoder layer: x + attention(norm(x)), then that + feed_forward(norm(that)). The residual stream is
// rounded to the compute type at every sum, so bits do not depend on the stage boundaries.
//
// A rank computes its shards of the layer (tensor_group.h): norms and residual stream on each shard's rows,
// heads and ffn columns on all rows, gathered in front of the products and summed behind them. Experts work
// on each shard's rows.
#pragma once

#include <span>

#include "nn/attention_block.h"
#include "nn/feed_forward.h"
#include "nn/groups/tensor_group.h"

namespace penstock::nn {

struct LayerShard {
  AttentionBlock attention;
  FeedForward feed_forward;
  Mixture mixture;  // in place of feed_forward, where the layer has experts
  Parameter* input_norm = nullptr;
  Parameter* post_attention_norm = nullptr;
};

struct DecoderLayer {
  std::vector<LayerShard> shards;  // of this rank
  TensorGroup* group = nullptr;
  double norm_epsilon = 1e-5;

  bool has_experts() const { return shards.front().mixture.defined(); }
};

// What a call knows of its slice besides the layer's own record.
struct LayerCall {
  SlicePlace place;
  std::vector<std::vector<LayerRecord*>> earlier;  // of each shard, newest slice first
  AttentionPartners* partners = nullptr;           // compute their part of the attention; a single shard's
  const RouteLosses* route_losses = nullptr;       // of the backward of experts; null: none
};

// input: each shard's rows [n, h], to those of the output; fills the records.
Rows layer_forward(const DecoderLayer& layer, const Rows& input, const LayerCall& call,
                   LayerRecords& records);

// grad_output: each shard's rows, to the gradient of the input. Adds all weights' gradients, and consumes the
// records. Dropped tensors are recomputed first, from the earlier slices' keys and values, which are alive
// since slices run backward from last to first. The feed-forward's weight products come before attention, so
// that their operands do not live beside attention's; bits are those of the two calls below.
Rows layer_backward(const DecoderLayer& layer, Rows grad_output, const LayerCall& call, LayerRecords records);

// The same, but that the matrices' weight products are added to `pending`, which keeps grad_output, and
// gathered rows until end_gathered().
Rows layer_backward_input(const DecoderLayer& layer, Rows grad_output, const LayerCall& call,
                          LayerRecords records, WeightRecord& pending);

// Computes the pending weight gradients of a slice of so many tokens, in order, and frees them.
void layer_backward_weight(const DecoderLayer& layer, std::int64_t tokens, WeightRecord pending);

}  // namespace penstock::nn
