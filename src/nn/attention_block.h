// SPDX-License-Identifier: Apache-2.0
// One shard's heads of causal self-attention with rotary positions and grouped queries over the slices of a
// sequence: attention over chunks (the slice's own, then the earlier ones, newest first, short ones of them
// joined where the kernel wants more keys). The products before and behind it are the layer's
// (decoder_layer.h), since their rows are shared out. Where a context group shares out the tokens, records
// hold the shared frame of queries, keys and values (context_group.h).
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
  Parameter* query_norm = nullptr;  // [d], of each head before the rotation (Qwen3); null: none
  Parameter* key_norm = nullptr;
  double norm_epsilon = 1e-5;
  const kernels::RotaryTable* rotary = nullptr;
  const ContextGroup* context = &ContextGroup::alone();
};

// Fill in Query, Key and Value, and what their norms need, from the rows [N, heads·d] of their products. A
// key that is there stays.
void set_query(const AttentionBlock& block, const SlicePlace& place, const at::Tensor& rows,
               LayerRecord& record);
void set_key(const AttentionBlock& block, const SlicePlace& place, const at::Tensor& rows,
             LayerRecord& record);
void set_value(const AttentionBlock& block, const SlicePlace& place, const at::Tensor& rows,
               LayerRecord& record);

// Computes AttentionOutput and LogSumExp from Query, Key, Value and the earlier slices' keys and values.
// `partners` may be null; otherwise their keys must have been posted, and their part is merged here.
void attend(const AttentionBlock& block, const SlicePlace& place, EarlierSlices earlier, LayerRecord& record,
            AttentionPartners* partners = nullptr);

// Sends the partners the queries, once they are there and before the keys are; without effect where several
// ranks' queries meet first, which attend() posts.
void post_queries(const AttentionBlock& block, const LayerRecord& record, AttentionPartners* partners);

// Whether a tensor that only set_key gives is missing.
bool lacks_key(const AttentionBlock& block, const LayerRecord& record);

// The gradients of the three products' results, [N, heads·d], and what their formation holds until the caller
// has used them.
struct AttentionGradients {
  at::Tensor query, key, value;
  at::Tensor output;         // of AttentionOutput, as given
  at::Tensor rotated_query;  // [b, H, T, d]
  kernels::AttentionPart merged;
  at::Tensor by_head;  // output as [b, H, T, d]
};

// grad_output [N, H·d]: the gradient of AttentionOutput. Reads Query, Key, Value, AttentionOutput, LogSumExp
// and the norms' inputs; adds to the gradients of the norms' weights. All later slices must be done. Adds to
// the earlier slices' key and value gradients and consumes this slice's own. Partners as in attend().
AttentionGradients attention_backward(const AttentionBlock& block, const SlicePlace& place,
                                      at::Tensor grad_output, EarlierSlices earlier, LayerRecord& record,
                                      AttentionPartners* partners = nullptr);

}  // namespace penstock::nn
