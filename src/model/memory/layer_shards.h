// SPDX-License-Identifier: Apache-2.0
// What a rank has of a layer under tensor parallelism with sequence parallelism (docs/mesh.md, "Tensor ranks"
// and "Equal bits"): T/t logical shards, each with its heads, its ffn columns and its block of a slice's
// tokens. The rank is the first of the tensor group: earlier blocks are longer, so none holds more. Context
// parallelism (docs/mesh.md, "Context ranks") decides which heads and tokens of the keys and values it has.
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

// How c context ranks form attention together (nn/groups/context_group.h): heads are exchanged among c_h of
// them; among those with the same heads queries travel, or keys and values do and stay.
struct ContextSplit {
  std::int64_t ranks = 1;  // c
  std::int64_t heads = 1;  // c_h, which divides c
  bool gathers = false;

  std::int64_t token_ranks() const { return ranks / heads; }  // c_q
  // Tokens whose keys and values a rank keeps for each token of its own, and its key heads of so many.
  std::int64_t kept_tokens() const { return gathers ? ranks : heads; }
  std::int64_t kept_heads(std::int64_t key_heads) const { return key_heads > heads ? key_heads / heads : 1; }
};

class LayerShards {
 public:
  // `rows`: N, the tokens of a slice in all sequences, of one context rank.
  LayerShards(const Shape& whole, TensorSplit split, Tokens rows, ContextSplit context = {});

  Tokens rows() const { return rows_; }
  Tokens rows_of(std::int64_t shard) const;  // of the T shards
  Tokens own_rows() const { return own_rows_; }
  // Heads, key heads and ffn columns of all shards of the rank.
  const Shape& together() const { return together_; }

  // Bytes that the rank has of these tensors, and of the statistics kept with them. Keys and values: as the
  // cache holds them.
  Bytes kept(KeepSet keep, Bytes element) const;
  Bytes statistics(KeepSet keep, Bytes accumulator) const;

  // Of the operands of all weight products: an input and a gradient each.
  Bytes weight_record(Bytes element, Bytes accumulator) const;

 private:
  TensorSplit split_;
  ContextSplit context_;
  Tokens rows_, own_rows_ = 0;
  Shape together_;
  Shape cached_;  // heads of which the rank keeps keys and values
};

}  // namespace penstock::model
