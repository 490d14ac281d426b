// SPDX-License-Identifier: Apache-2.0
// Shared by all tiled forwards: packed keys and values, and the loop over tiles of queries.
#pragma once

#include <ATen/ops/empty.h>

#include "nn/kernels/cpu/attention/tiles.h"

namespace penstock::nn::kernels {

// Packed keys and values of one chunk, tile by tile.
template <class Element>
class KeyRoom {
 public:
  // Rows of one tile.
  struct Rows {
    const Element* rows;
    std::int64_t stride;
  };

  KeyRoom(const Extent& extent, const at::Tensor& key)
      : extent_(extent), room_(room_of(extent.most_keys()) * extent.width) {
    packed_ = at::empty({extent.sequences * extent.kv_heads * extent.key_tiles(), 2, room_}, key.options());
  }

  // Calls pack(rows of keys, rows of values, their count, to) for each tile.
  template <class Pack>
  void fill(const at::Tensor& key, const at::Tensor& value, Pack&& pack) {
    const auto keys = read_heads<Element>(key), values = read_heads<Element>(value);
    at::parallel_for(0, packed_.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t place = i / extent_.key_tiles(), tile = i % extent_.key_tiles();
        const std::int64_t sequence = place / extent_.kv_heads, head = place % extent_.kv_heads;
        pack(Rows{keys.at(sequence, head, tile * kKeys), keys.stride()},
             Rows{values.at(sequence, head, tile * kKeys), values.stride()}, extent_.keys_of(tile),
             at(place, tile));
      }
    });
  }

  // place: sequence · key-value heads + head. Values begin room() elements after the keys.
  Element* at(std::int64_t place, std::int64_t tile) const {
    return packed_.mutable_data_ptr<Element>() + (place * extent_.key_tiles() + tile) * 2 * room_;
  }
  std::int64_t room() const { return room_; }

 private:
  const Extent& extent_;
  std::int64_t room_;
  at::Tensor packed_;
};

// The queries of one tile; their output rows and log-sum-exps.
template <class Element>
struct QueryTile {
  std::int64_t sequence;
  const Element* query;
  std::int64_t query_stride;
  std::int64_t first, rows;
  float* output;
  std::int64_t output_stride;
  float* log_sum_exp;
};

// Natural log-sum-exp from `maximum` in base 2 and sum of 2^(score − maximum). -infinity if the sum is 0.
inline float log_sum_exp(float maximum, float sum) {
  if (sum == 0) return -INFINITY;
  return static_cast<float>(static_cast<double>(maximum) / kLogOfE + std::log(static_cast<double>(sum)));
}

// Alternates between the first and the last tiles of a head, so that consecutive tiles have about equal work
// under the causal mask.
inline std::int64_t alternating(std::int64_t index, std::int64_t count) {
  return index % 2 == 0 ? index / 2 : count - 1 - index / 2;
}

// Constructs Packed(extent, key, value) once. Each task constructs a Tile(extent, packed, visible) and calls
// attend(QueryTile<Element>, place) for one tile of up to Tile::kTile queries after another.
template <class Element, class Packed, class Tile>
AttentionPart attend_by_query_tiles(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                    const Visible& visible) {
  const Extent extent(query, key);
  const Packed packed(extent, key, value);
  const auto options = at::dtype(at::kFloat);
  const at::Tensor by_token =
      at::empty({extent.sequences, extent.queries, extent.heads, extent.width}, options);
  AttentionPart part{by_token.transpose(1, 2),
                     at::empty({extent.sequences, extent.heads, extent.queries}, options)};
  const auto queries = read_heads<Element>(query);
  const Heads<float> outputs{part.output.data_ptr<float>(), part.output.strides()};
  float* log_sum_exp = part.log_sum_exp.data_ptr<float>();
  const std::int64_t tiles = (extent.queries + Tile::kTile - 1) / Tile::kTile;
  at::parallel_for(0, extent.sequences * extent.heads * tiles, 1, [&](std::int64_t begin, std::int64_t end) {
    Tile work(extent, packed, visible);
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t place = task / tiles, tile = alternating(task % tiles, tiles);
      const std::int64_t sequence = place / extent.heads, head = place % extent.heads;
      const std::int64_t first = tile * Tile::kTile, rows = std::min(Tile::kTile, extent.queries - first);
      work.attend(
          {sequence, queries.at(sequence, head, first), queries.stride(), first, rows,
           outputs.at(sequence, head, first), outputs.stride(), log_sum_exp + place * extent.queries + first},
          sequence * extent.kv_heads + head / extent.group());
    }
  });
  return part;
}

}  // namespace penstock::nn::kernels
