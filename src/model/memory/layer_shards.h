// SPDX-License-Identifier: Apache-2.0
// A rank's part of a layer under tensor parallelism with sequence parallelism (docs/mesh.md, "Tensor ranks"
// and "Equal bits"): T/t logical shards, each with its heads, its ffn columns and its block of a slice's
// tokens. Models the first rank of the tensor group: earlier blocks are longer, so no rank holds more.
// Context parallelism (docs/mesh.md, "Context ranks") decides its heads and tokens of keys and values.
#pragma once

#include "model/memory/policy.h"
#include "model/shape.h"

namespace penstock::model {

struct TensorSplit {
  std::int64_t shards = 1;  // T, over all ranks
  std::int64_t ranks = 1;   // t, which divides T

  std::int64_t per_rank() const { return shards / ranks; }
  bool is_split() const { return shards > 1; }
};

// How c context ranks compute attention together (nn/groups/context_group.h): heads are exchanged among c_h
// ranks; among the c_q ranks with the same heads, queries travel, or keys and values are gathered and kept.
struct ContextSplit {
  std::int64_t ranks = 1;  // c
  std::int64_t heads = 1;  // c_h, which divides c
  bool gathers = false;

  std::int64_t token_ranks() const { return ranks / heads; }  // c_q
  // Tokens whose keys and values a rank keeps per token of its own; and how many of `key_heads` it keeps.
  std::int64_t kept_tokens() const { return gathers ? ranks : heads; }
  std::int64_t kept_heads(std::int64_t key_heads) const { return key_heads > heads ? key_heads / heads : 1; }
};

class LayerShards {
 public:
  // `rows`: N, the tokens of a slice over all sequences, per context rank.
  LayerShards(const Shape& whole, TensorSplit split, Tokens rows, ContextSplit context = {});

  Tokens rows() const { return rows_; }
  Tokens rows_of(std::int64_t shard) const;  // of one of the T shards
  Tokens own_rows() const { return own_rows_; }
  // Heads, key heads and ffn columns of all the rank's shards.
  const Shape& together() const { return together_; }

  // The rank's bytes of these tensors, and of the statistics kept with them. Keys and values count as in the
  // cache.
  Bytes kept(KeepSet keep, Bytes element) const;
  Bytes statistics(KeepSet keep, Bytes accumulator) const;

  // Bytes of the operands of all weight products: an input and a gradient each.
  Bytes weight_record(Bytes element, Bytes accumulator) const;

 private:
  TensorSplit split_;
  ContextSplit context_;
  Tokens rows_, own_rows_ = 0;
  Shape together_;
  Shape cached_;  // the heads whose keys and values the rank keeps
};

}  // namespace penstock::model
