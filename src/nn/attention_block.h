// SPDX-License-Identifier: Apache-2.0
// Causal self-attention with rotary positions and grouped queries over the slices of a sequence: products for
// query, key and value, attention over chunks (the slice's own, then the earlier ones, newest first), the
// output product.
#pragma once

#include "nn/attention_partners.h"
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

// Position of a slice: b sequences, T tokens of each, starting at a position.
struct SlicePlace {
  std::int64_t sequences = 1;
  std::int64_t tokens = 1;
  std::int64_t first_position = 0;
};

// Computes those of Query, Key, Value, AttentionOutput and LogSumExp that the record lacks (all in the
// forward, the dropped ones in the backward) from Norm1Output and the earlier slices' keys and values.
// `partners` may be null; otherwise the keys must have been posted, and their part is posted and merged here.
void attend(const AttentionBlock& block, const SlicePlace& place, EarlierSlices earlier, LayerRecord& record,
            AttentionPartners* partners = nullptr);

// The output product of AttentionOutput, [N, h].
at::Tensor attention_output(const AttentionBlock& block, const LayerRecord& record);

// grad_output [N, h] → the gradient of Norm1Output [N, h]. Reads the whole record. All later slices must be
// done. Adds to the earlier slices' key and value gradients, consumes this slice's own, and appends the four
// weight products. Partners as in attend().
at::Tensor attention_backward_input(const AttentionBlock& block, const SlicePlace& place,
                                    const at::Tensor& grad_output, EarlierSlices earlier, LayerRecord& record,
                                    WeightRecord& pending, AttentionPartners* partners = nullptr);

}  // namespace penstock::nn
