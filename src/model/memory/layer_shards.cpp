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
  together_.ffn = 0;
  for (std::int64_t shard = 0; shard < count; ++shard) {
    together_.ffn += shape_of_shard(whole, split.shards, shard).ffn;
    own_rows_ += rows_of(shard);
  }
}

Tokens LayerShards::rows_of(std::int64_t shard) const {
  return mesh::even_block(rows_, split_.shards, shard).count;
}

Bytes LayerShards::kept(KeepSet keep, Bytes element) const {
  const KeepSet keys = keep.common(KeepSet{}.with(SavedTensor::KeyValue));
  const KeepSet others = keep.common(kCutByWidth).without(SavedTensor::KeyValue);
  return own_rows_ * kept_bytes(together_, keep.common(kCutByTokens), element) +
         rows_ * kept_bytes(together_, others, element) +
         rows_ * context_.kept_tokens() * kept_bytes(cached_, keys, element);
}

Bytes LayerShards::statistics(KeepSet keep, Bytes accumulator) const {
  return own_rows_ * statistics_bytes(together_, keep.common(kCutByTokens), accumulator) +
         rows_ * statistics_bytes(together_, keep.common(kCutByWidth), accumulator);
}

}  // namespace penstock::model
