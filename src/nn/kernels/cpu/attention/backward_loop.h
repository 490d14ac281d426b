// SPDX-License-Identifier: Apache-2.0
// Shared by all tiled backwards: a head's queries in the layouts of the products, and the loop over heads and
// tiles of keys. Scores are computed transposed, [keys, queries], so that every product takes its operands as
// stored.
#pragma once

#include <ATen/ops/empty.h>

#include <vector>

#include "nn/kernels/cpu/attention/tiles.h"

namespace penstock::nn::kernels {

template <class Element>
PENSTOCK_VECTORISED float dot(const Element* a, const Element* b, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += float(a[i]) * float(b[i]);
  return sum;
}

// Workspace for one head per thread, allocated by the calling thread so that it is accounted and reused.
struct QueryRoom {
  std::int64_t tile_size;
  at::Tensor packed, grad, rows;

  QueryRoom(const Extent& extent, std::int64_t threads, at::ScalarType type)
      : tile_size(room_of(extent.most_queries()) * extent.width),
        packed(at::empty({threads, 4 * extent.query_tiles() * tile_size}, at::dtype(type))),
        grad(at::empty({threads, extent.query_tiles() * tile_size}, at::dtype(at::kFloat))),
        rows(at::empty({threads, 2 * extent.query_tiles() * kQueries}, at::dtype(at::kFloat))) {}
};

// The queries of one head and their results. A tile's columns are its queries, padded to `unit`; padding has
// probability 0 and no gradient.
template <class Element>
class QueryTiles {
 public:
  QueryTiles(const Extent& extent, const QueryRoom& room, std::int64_t thread, std::int64_t unit)
      : extent_(extent),
        tile_size_(room.tile_size),
        unit_(unit),
        packed_(room.packed.mutable_data_ptr<Element>() + thread * room.packed.size(1)),
        grad_(room.grad.mutable_data_ptr<float>() + thread * room.grad.size(1)),
        rows_(room.rows.mutable_data_ptr<float>() + thread * room.rows.size(1)) {}

  // One head: its queries, output and output's gradient by token, and its log-sum-exps.
  struct Head {
    const Element *query, *output, *grad_output;
    std::int64_t query_stride, output_stride, grad_stride;
    const float* log_sum_exp;
  };
  // pack(rows, stride, count, columns, transposed, plain) packs a tile's queries, or its output's gradients.
  template <class Pack>
  void fill(const Head& head, Pack&& pack) {
    begun_.assign(static_cast<std::size_t>(extent_.query_tiles()), false);
    for (std::int64_t tile = 0; tile < extent_.query_tiles(); ++tile) {
      const std::int64_t first = tile * kQueries, count = extent_.queries_of(tile);
      const Element* query = head.query + first * head.query_stride;
      const Element* grad = head.grad_output + first * head.grad_stride;
      pack(query, head.query_stride, count, columns(tile), queries_transposed(tile), queries(tile));
      pack(grad, head.grad_stride, count, columns(tile), grads_transposed(tile), grads(tile));
      for (std::int64_t row = 0; row < columns(tile); ++row) {
        const bool real = row < count;
        const Element* output = head.output + (first + row) * head.output_stride;
        log_sum_exp(tile)[row] = real ? in_base_two(head.log_sum_exp[first + row]) : INFINITY;
        delta(tile)[row] = real ? dot(output, grad + row * head.grad_stride, extent_.width) : 0.0f;
      }
    }
  }
  // Writes the tile's gradient times `scale` to rows [queries, d].
  void write_gradient(std::int64_t tile, float scale, float* to) const {
    const std::int64_t count = extent_.queries_of(tile);
    if (!begun(tile)) return static_cast<void>(std::fill_n(to, count * extent_.width, 0.0f));
    transpose_rows(grad_queries(tile), columns(tile), extent_.width, count, extent_.width, to);
    for (std::int64_t i = 0; scale != 1.0f && i < count * extent_.width; ++i) to[i] *= scale;
  }

  std::int64_t columns(std::int64_t tile) const {
    return (extent_.queries_of(tile) + unit_ - 1) / unit_ * unit_;
  }
  Element* queries_transposed(std::int64_t tile) const { return packed_ + 4 * tile * tile_size_; }
  Element* queries(std::int64_t tile) const { return queries_transposed(tile) + tile_size_; }
  Element* grads_transposed(std::int64_t tile) const { return queries_transposed(tile) + 2 * tile_size_; }
  Element* grads(std::int64_t tile) const { return queries_transposed(tile) + 3 * tile_size_; }
  float* grad_queries(std::int64_t tile) const { return grad_ + tile * tile_size_; }  // [d, columns]
  // In base 2.
  float* log_sum_exp(std::int64_t tile) const { return rows_ + 2 * tile * kQueries; }
  float* delta(std::int64_t tile) const { return log_sum_exp(tile) + kQueries; }

  // Whether the tile's gradient holds a sum; the first keys set it, later ones add to it.
  bool begun(std::int64_t tile) const { return begun_[static_cast<std::size_t>(tile)]; }
  void begin(std::int64_t tile) { begun_[static_cast<std::size_t>(tile)] = true; }

 private:
  // In f64, rounded once.
  static float in_base_two(float log_sum_exp) {
    return static_cast<float>(kLogOfE * static_cast<double>(log_sum_exp));
  }

  const Extent& extent_;
  std::int64_t tile_size_, unit_;
  Element* packed_;
  float *grad_, *rows_;
  std::vector<bool> begun_;  // one per tile
};

// One tile of keys of one key-value head, and its gradients [count, d], packed.
template <class Element>
struct KeyTile {
  std::int64_t sequence;
  const Element *keys, *values;
  std::int64_t key_stride, value_stride;
  std::int64_t first, count;
  float *grad_keys, *grad_values;
};

// Runs one call, in parallel over key-value heads. For each query head, a task's Tile(extent, visible) packs
// the queries, fill(QueryTiles, Head), then processes all of them against one tile of keys after another,
// against_keys(KeyTile, QueryTiles, adds); `adds`: add to the gradients of keys and values, else set them.
// The sums for queries are scaled by Tile::query_scale(extent).
template <class Element, class Tile>
class Backward {
 public:
  Backward(const at::Tensor& grad_output, const at::Tensor& query, const at::Tensor& key,
           const at::Tensor& value, const AttentionPart& merged, const Visible& visible)
      : extent_(query, key),
        visible_(visible),
        queries_(read_heads<Element>(query)),
        keys_(read_heads<Element>(key)),
        values_(read_heads<Element>(value)),
        outputs_(read_heads<Element>(merged.output)),
        grads_(read_heads<Element>(grad_output)),
        log_sum_exp_(merged.log_sum_exp.const_data_ptr<float>()) {
    const auto options = at::dtype(at::kFloat);
    result_ = {at::empty(query.sizes(), options), at::empty(key.sizes(), options),
               at::empty(value.sizes(), options)};
  }

  AttentionGradients run() {
    const std::int64_t heads = extent_.sequences * extent_.kv_heads;
    const QueryRoom room(extent_, std::min<std::int64_t>(heads, at::get_num_threads()),
                         c10::CppTypeToScalarType<Element>::value);
    at::parallel_for(0, heads, 1, [&](std::int64_t begin, std::int64_t end) {
      QueryTiles<Element> packed(extent_, room, at::get_thread_num(), Tile::kUnit);
      Tile tile(extent_, visible_);
      for (std::int64_t place = begin; place < end; ++place) {
        for (std::int64_t member = 0; member < extent_.group(); ++member) {
          one_head(place, member, packed, tile);
        }
      }
    });
    return result_;
  }

 private:
  // place: sequence · key-value heads + head.
  void one_head(std::int64_t place, std::int64_t member, QueryTiles<Element>& packed, Tile& tile) {
    const std::int64_t sequence = place / extent_.kv_heads,
                       head = place % extent_.kv_heads * extent_.group() + member;
    const std::int64_t row = (sequence * extent_.heads + head) * extent_.queries;
    tile.fill(packed,
              {queries_.at(sequence, head, 0), outputs_.at(sequence, head, 0), grads_.at(sequence, head, 0),
               queries_.stride(), outputs_.stride(), grads_.stride(), log_sum_exp_ + row});
    for (std::int64_t keys = 0; keys < extent_.key_tiles(); ++keys) {
      tile.against_keys(key_tile(place, keys), packed, member > 0);
    }
    for (std::int64_t queries = 0; queries < extent_.query_tiles(); ++queries) {
      packed.write_gradient(queries, Tile::query_scale(extent_),
                            result_.query.data_ptr<float>() + (row + queries * kQueries) * extent_.width);
    }
  }

  KeyTile<Element> key_tile(std::int64_t place, std::int64_t tile) const {
    const std::int64_t sequence = place / extent_.kv_heads, head = place % extent_.kv_heads;
    const std::int64_t first = tile * kKeys, row = (place * extent_.keys + first) * extent_.width;
    return {sequence,
            keys_.at(sequence, head, first),
            values_.at(sequence, head, first),
            keys_.stride(),
            values_.stride(),
            first,
            extent_.keys_of(tile),
            result_.key.data_ptr<float>() + row,
            result_.value.data_ptr<float>() + row};
  }

  Extent extent_;
  const Visible& visible_;
  Heads<const Element> queries_, keys_, values_, outputs_, grads_;
  const float* log_sum_exp_;
  AttentionGradients result_;
};

}  // namespace penstock::nn::kernels
