// SPDX-License-Identifier: Apache-2.0
// Causal self-attention with rotary positions and grouped queries over the slices of a sequence: products for
// query, key and value, attention over chunks (the slice's own, then the earlier ones, newest first), the
// output product.
#pragma once

#include "nn/attention_helpers.h"
#include "nn/kernels/rope.h"
#include "nn/record.h"

namespace penstock::nn {

struct AttentionBlock {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  Parameter* query = nullptr;
  Parameter* key = nullptr;
  Parameter* value = nullptr;
  Parameter* output = nullptr;
  const kernels::RotaryTable* rotary = nullptr;
};

// Where a slice lies: b sequences, T tokens of each, from a position on.
struct SlicePlace {
  std::int64_t sequences = 1;
  std::int64_t tokens = 1;
  std::int64_t first_position = 0;
};

// Forms what the record lacks of Query, Key, Value, AttentionOutput and LogSumExp from Norm1Output and the
// earlier slices' keys and values: all of it in the forward, what was not kept in the backward. `helpers` may
// be null; otherwise their part of the attention is posted and merged here, the keys must have been posted.
void attend(const AttentionBlock& block, const SlicePlace& place, EarlierSlices earlier, LayerRecord& record,
            AttentionHelpers* helpers = nullptr);

// The output product of AttentionOutput, [N, h].
at::Tensor attention_output(const AttentionBlock& block, const LayerRecord& record);

// grad_output [N, h] → the gradient of Norm1Output [N, h]. Reads the whole record. All later slices must have
// been here. Adds to the earlier slices' key and value gradients, consumes this slice's own, and appends the
// four weight products. Helpers as in attend().
at::Tensor attention_backward_input(const AttentionBlock& block, const SlicePlace& place,
                                    const at::Tensor& grad_output, EarlierSlices earlier, LayerRecord& record,
                                    WeightRecord& pending, AttentionHelpers* helpers = nullptr);

}  // namespace penstock::nn
