// SPDX-License-Identifier: Apache-2.0
// One shard's heads of causal self-attention with rotary positions and grouped queries. A slice attends to
// chunks: its own, then those of earlier slices, newest first; short ones are joined where the kernel wants
// more keys. The layer computes the products before and after it (decoder_layer.h), since it splits their
// rows. If a context group splits the tokens, records hold queries, keys and values in the shared frame
// (context_group.h).
#pragma once

#include "nn/attention_partners.h"
#include "nn/groups/context_group.h"
#include "nn/groups/slice_place.h"
#include "nn/kernels/rope.h"
#include "nn/record.h"

namespace penstock::nn {

struct AttentionBlock {
  std::int64_t heads = 1;  // of the shard
  std::int64_t kv_heads = 1;
  Parameter* query = nullptr;
  Parameter* key = nullptr;
  Parameter* value = nullptr;
  Parameter* output = nullptr;
  Parameter* query_norm = nullptr;  // [d], per head, before the rotation (Qwen3); may be null
  Parameter* key_norm = nullptr;
  double norm_epsilon = 1e-5;
  const kernels::RotaryTable* rotary = nullptr;
  const ContextGroup* context = &ContextGroup::alone();
};

// Set Query, Key and Value, and the head norms' tensors for the backward, from the product rows [N, heads·d].
// set_key() keeps an existing key.
void set_query(const AttentionBlock& block, const SlicePlace& place, const at::Tensor& rows,
               LayerRecord& record);
void set_key(const AttentionBlock& block, const SlicePlace& place, const at::Tensor& rows,
             LayerRecord& record);
void set_value(const AttentionBlock& block, const SlicePlace& place, const at::Tensor& rows,
               LayerRecord& record);

// Computes AttentionOutput and LogSumExp from Query, Key, Value and the earlier slices' keys and values.
// `partners` may be null; otherwise post their keys first, and their part is merged here.
void attend(const AttentionBlock& block, const SlicePlace& place, EarlierSlices earlier, LayerRecord& record,
            AttentionPartners* partners = nullptr);

// Sends the queries to the partners, after set_query() and before set_key(). No-op where several ranks'
// queries are gathered first: attend() posts those.
void post_queries(const AttentionBlock& block, const LayerRecord& record, AttentionPartners* partners);

// Returns whether a tensor that only set_key() sets is missing.
bool lacks_key(const AttentionBlock& block, const LayerRecord& record);

// Gradients of the three products' results [N, heads·d], and the intermediates that stay alive until the
// caller has used them.
struct AttentionGradients {
  at::Tensor query, key, value;
  at::Tensor output;         // gradient of AttentionOutput, as passed in
  at::Tensor rotated_query;  // [b, H, T, d]
  kernels::AttentionPart merged;
  at::Tensor by_head;  // output as [b, H, T, d]
};

// `grad_output` [N, H·d]: the gradient of AttentionOutput. Reads Query, Key, Value, AttentionOutput,
// LogSumExp and the norms' inputs; adds to the norms' weight gradients. All later slices must be done. Adds
// to the earlier slices' key and value gradients and consumes this slice's own. Partners as in attend().
AttentionGradients attention_backward(const AttentionBlock& block, const SlicePlace& place,
                                      at::Tensor grad_output, EarlierSlices earlier, LayerRecord& record,
                                      AttentionPartners* partners = nullptr);

}  // namespace penstock::nn
