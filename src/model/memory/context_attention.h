// SPDX-License-Identifier: Apache-2.0
// Temporaries of attention in a context group (docs/mesh.md, "Context ranks"), operation by operation as in
// nn/attention_block.cpp, nn/context_attention.cpp and nn/groups/context_group.cpp. Models the group's first
// rank, whose keys have the most queries after them.
#pragma once

#include "model/memory/kernels.h"
#include "model/memory/layer_shards.h"

namespace penstock::model {

struct ContextAttentionSize {
  const KernelSetting& setting;
  ContextSplit context;
  AttentionSize own;  // one shard's heads, this rank's tokens
  bool last_slice = true;
};

// Converts rotated queries, keys or values [b, heads, T, d] from the own frame to that of the records
// (nn/groups/context_group.h): takes the result and gives the original.
void share_queries(Tape& tape, const ContextAttentionSize& size);
void share_keys(Tape& tape, const ContextAttentionSize& size, bool contiguous);

// Leaves the attention output, in the compute type, and the log-sum-exp on the tape.
void attend_in_context(Tape& tape, const ContextAttentionSize& size);

// Starts with the gradient of the attention output on the tape. Leaves the gradients of the query, key and
// value products' results.
struct ContextLeft {
  Bytes unused = 0;     // temporaries freed at the end of the layer's attention
  Bytes gradients = 0;  // of K and V before the rotation; temporaries freed with the record
  Bytes summed = 0;     // the same if later slices have added to them: not temporaries
};
ContextLeft attend_in_context_backward(Tape& tape, const ContextAttentionSize& size);

}  // namespace penstock::model
