// SPDX-License-Identifier: Apache-2.0
#include "model/memory/layer_shards.h"

#include "mesh/shard.h"

namespace penstock::model {

LayerShards::LayerShards(const Shape& whole, TensorSplit split, Tokens rows, ContextSplit context)
    : split_(split), context_(context), rows_(rows), together_(shape_of_rank(whole, split.shards)) {
  const std::int64_t count = split.per_rank();
  cached_ = together_;
  cached_.kv_heads = count * context.kept_heads(together_.kv_heads);
  together_.heads *= count;
  together_.kv_heads *= count;
  if (whole.experts == 1) together_.ffn = 0;
  for (std::int64_t shard = 0; shard < count; ++shard) {
    if (whole.experts == 1) together_.ffn += shape_of_shard(whole, split.shards, shard).ffn;
    own_rows_ += rows_of(shard);
  }
}

Tokens LayerShards::rows_of(std::int64_t shard) const {
  return mesh::even_block(rows_, split_.shards, shard).count;
}

Bytes LayerShards::kept(KeepSet keep, Bytes element) const {
  const KeepSet keys = keep.common(KeepSet{}.with(SavedTensor::KeyValue));
  const KeepSet others = keep.common(cut_by_width(together_)).without(SavedTensor::KeyValue);
  return own_rows_ * kept_bytes(together_, keep.common(cut_by_tokens(together_)), element) +
         rows_ * kept_bytes(together_, others, element) +
         rows_ * context_.kept_tokens() * kept_bytes(cached_, keys, element);
}

Bytes LayerShards::statistics(KeepSet keep, Bytes accumulator) const {
  return own_rows_ * statistics_bytes(together_, keep.common(cut_by_tokens(together_)), accumulator) +
         rows_ * statistics_bytes(together_, keep.common(cut_by_width(together_)), accumulator);
}

Bytes LayerShards::weight_record(Bytes element, Bytes accumulator) const {
  return own_rows_ * weight_record_bytes(together_, cut_by_tokens(together_), element, accumulator) +
         rows_ * weight_record_bytes(together_, cut_by_width(together_), element, accumulator);
}

}  // namespace penstock::model
