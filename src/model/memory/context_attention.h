// SPDX-License-Identifier: Apache-2.0
// Temporaries of attention whose tokens a context group shares out (docs/mesh.md, "Context ranks"), operation
// by operation as in nn/attention_block.cpp, nn/context_attention.cpp and nn/groups/context_group.cpp. The
// rank is the first of the group, which has the most queries behind its keys.
#pragma once

#include "model/memory/kernels.h"
#include "model/memory/layer_shards.h"

namespace penstock::model {

struct ContextAttentionSize {
  const KernelSetting& setting;
  ContextSplit context;
  AttentionSize own;  // heads of a shard, tokens of this rank
  bool last_slice = true;
};

// Brings rotated queries, keys or values [b, heads, T, d] to the frame in which records hold them: takes them
// there, gives the rank's own.
void share_queries(Tape& tape, const ContextAttentionSize& size);
void share_keys(Tape& tape, const ContextAttentionSize& size, bool contiguous);

// Leaves the attention output, in the compute type, and the log-sum-exp.
void attend_in_context(Tape& tape, const ContextAttentionSize& size);

// From the gradient of the attention output, which is on the tape, to the gradients of the products' results
// of queries, keys and values, which it leaves.
struct ContextLeft {
  Bytes unused = 0;     // temporaries that end with the layer's attention
  Bytes gradients = 0;  // of keys and values before the rotation, temporaries that end with the record
  Bytes summed = 0;     // the same where they are what later slices have added to: no temporaries
};
ContextLeft attend_in_context_backward(Tape& tape, const ContextAttentionSize& size);

}  // namespace penstock::model
