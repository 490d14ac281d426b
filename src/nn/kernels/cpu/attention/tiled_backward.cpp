// SPDX-License-Identifier: Apache-2.0
// Scores are computed transposed, [keys, queries], so that every product takes its operands as stored.
#include <ATen/ops/empty.h>

#include <vector>

#include "nn/kernels/cpu/attention/tiled.h"
#include "nn/kernels/cpu/attention/tiles.h"
#include "nn/kernels/cpu/tiled_products.h"

namespace penstock::nn::kernels {
namespace {

// Rounded once.
float in_base_two(float log_sum_exp) {
  return static_cast<float>(kLogOfE * static_cast<double>(log_sum_exp));
}

// Of a tile, those that see a key.
struct SeeingQueries {
  std::int64_t from, until;
};

// P = exp(scale·S − lse) and dS = scale·P·(dP − δ) of one key, for the queries that see it; 0 for the others.
// `log_sum_exp` is to base 2.
template <class Element>
PENSTOCK_VECTORISED void gradients_of_key(const float* scores, const float* grad_probabilities,
                                          const float* log_sum_exp, const float* delta, float scale_of_two,
                                          float scale, const SeeingQueries& sees, std::int64_t count,
                                          Element* probabilities, Element* grad_scores) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float seen = i >= sees.from && i < sees.until ? 1.0f : 0.0f;
    const float probability = seen * power_of_two(__builtin_fmaf(scale_of_two, scores[i], -log_sum_exp[i]));
    probabilities[i] = narrowed_number<Element>(probability);
    grad_scores[i] = narrowed<Element>(scale * probability * (grad_probabilities[i] - delta[i]));
  }
}

template <class Element>
PENSTOCK_VECTORISED float dot(const Element* a, const Element* b, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += float(a[i]) * float(b[i]);
  return sum;
}

// Scratch memory for one head per thread, allocated by the calling thread so that it is accounted and reused.
struct QueryRoom {
  at::Tensor packed, grad, rows;

  QueryRoom(const Extent& extent, std::int64_t threads, std::int64_t tile_size, at::ScalarType type)
      : packed(at::empty({threads, 4 * extent.query_tiles() * tile_size}, at::dtype(type))),
        grad(at::empty({threads, extent.query_tiles() * tile_size}, at::dtype(at::kFloat))),
        rows(at::empty({threads, 2 * extent.query_tiles() * kQueries}, at::dtype(at::kFloat))) {}
};

template <class Element>
std::int64_t tile_size(const Extent& extent) {
  return padded<Element>(extent.most_queries()) * extent.width;
}

// The queries of one head and their results, in every layout the products need. A tile's columns are its
// queries, padded to a pair; padding has probability 0 and no gradient.
template <class Element>
class PackedQueries {
 public:
  PackedQueries(const Extent& extent, const QueryRoom& room, std::int64_t thread)
      : extent_(extent),
        tile_size_(tile_size<Element>(extent)),
        packed_(room.packed.mutable_data_ptr<Element>() + thread * room.packed.size(1)),
        grad_(room.grad.mutable_data_ptr<float>() + thread * room.grad.size(1)),
        rows_(room.rows.mutable_data_ptr<float>() + thread * room.rows.size(1)) {}

  // One head: its queries, output and output's gradient by token, and its log-sum-exps.
  struct Head {
    const Element *query, *output, *grad_output;
    std::int64_t query_stride, output_stride, grad_stride;
    const float* log_sum_exp;
  };
  void fill(const Head& head) {
    begun_.assign(static_cast<std::size_t>(extent_.query_tiles()), false);
    for (std::int64_t tile = 0; tile < extent_.query_tiles(); ++tile) {
      const std::int64_t first = tile * kQueries, count = extent_.queries_of(tile), width = extent_.width;
      const Element* query = head.query + first * head.query_stride;
      const Element* grad = head.grad_output + first * head.grad_stride;
      pack_transposed(query, head.query_stride, count, width, columns(tile), queries_transposed(tile));
      pack_rows(query, head.query_stride, count, width, queries(tile));
      pack_transposed(grad, head.grad_stride, count, width, columns(tile), grads_transposed(tile));
      pack_rows(grad, head.grad_stride, count, width, grads(tile));
      for (std::int64_t row = 0; row < columns(tile); ++row) {
        const bool real = row < count;
        const Element* output = head.output + (first + row) * head.output_stride;
        log_sum_exp(tile)[row] = real ? in_base_two(head.log_sum_exp[first + row]) : INFINITY;
        delta(tile)[row] = real ? dot(output, grad + row * head.grad_stride, width) : 0.0f;
      }
    }
  }

  std::int64_t columns(std::int64_t tile) const { return padded<Element>(extent_.queries_of(tile)); }
  Element* queries_transposed(std::int64_t tile) const { return packed_ + 4 * tile * tile_size_; }
  Element* queries(std::int64_t tile) const { return queries_transposed(tile) + tile_size_; }
  Element* grads_transposed(std::int64_t tile) const { return queries_transposed(tile) + 2 * tile_size_; }
  Element* grads(std::int64_t tile) const { return queries_transposed(tile) + 3 * tile_size_; }
  float* grad_queries(std::int64_t tile) const { return grad_ + tile * tile_size_; }  // [d, columns]
  // To base 2.
  float* log_sum_exp(std::int64_t tile) const { return rows_ + 2 * tile * kQueries; }
  float* delta(std::int64_t tile) const { return log_sum_exp(tile) + kQueries; }

  // Whether the tile's gradient has been added to; the first key to do so sets it.
  bool begun(std::int64_t tile) const { return begun_[static_cast<std::size_t>(tile)]; }
  void begin(std::int64_t tile) { begun_[static_cast<std::size_t>(tile)] = true; }

 private:
  const Extent& extent_;
  std::int64_t tile_size_;
  Element* packed_;
  float *grad_, *rows_;
  std::vector<bool> begun_;  // of each tile
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

// A task's tiles of scores and of values computed from them.
template <class Element>
class BackwardTile {
 public:
  BackwardTile(const Extent& extent, const Visible& visible)
      : extent_(extent),
        mask_(visible.mask),
        first_keys_(visible),
        elements_(padded<Element>(extent.most_keys()) * padded<Element>(extent.most_queries())),
        floats_(scratch<float>(2 * elements_)),
        elements_of_type_(scratch<Element>(3 * elements_)),
        keys_transposed_(scratch<Element>(padded<Element>(extent.most_keys()) * extent.width)) {}

  // All queries of one head against one tile of keys; `adds` to the gradients of keys and values, or sets
  // them.
  void against_keys(const KeyTile<Element>& keys, PackedQueries<Element>& packed, bool adds) {
    transpose_rows(keys.keys, keys.key_stride, keys.count, extent_.width, padded<Element>(keys.count),
                   keys_transposed_.get());
    for (std::int64_t tile = 0; tile < extent_.query_tiles(); ++tile) {
      const std::int64_t last = tile * kQueries + extent_.queries_of(tile) - 1;
      std::int64_t seen = seen_keys(mask_, last, keys.first, keys.count);
      if (first_keys_.of(keys.sequence, tile * kQueries) >= keys.first + seen) seen = 0;
      if (seen < keys.count && !adds) begin_gradients(keys);
      if (seen > 0) against_queries(keys, seen, packed, tile, adds || seen < keys.count);
      adds = true;
    }
  }

 private:
  // The first tile does not cover all keys, so its products cannot initialise the sums.
  void begin_gradients(const KeyTile<Element>& keys) {
    std::fill_n(keys.grad_keys, keys.count * extent_.width, 0.0f);
    std::fill_n(keys.grad_values, keys.count * extent_.width, 0.0f);
  }

  // The first `count` keys; no query of the tile sees later ones.
  void against_queries(const KeyTile<Element>& keys, std::int64_t count, PackedQueries<Element>& packed,
                       std::int64_t tile, bool adds) {
    const std::int64_t columns = packed.columns(tile), width = extent_.width, inner = padded<Element>(count);
    float *scores = floats_.get(), *grad_probabilities = scores + elements_;
    Element *probabilities = elements_of_type_.get(), *grad_scores = probabilities + elements_,
            *paired_grad_scores = grad_scores + elements_;
    TileProduct<Element>{count, columns, width, keys.key_stride, columns, columns, false}(
        keys.keys, packed.queries_transposed(tile), scores);
    TileProduct<Element>{count, columns, width, keys.value_stride, columns, columns, false}(
        keys.values, packed.grads_transposed(tile), grad_probabilities);
    SeeingQueries sees{.from = 0, .until = first_keys_.all() ? columns : 0};
    for (std::int64_t key = 0; key < count; ++key) {
      const std::int64_t row = key * columns;
      if (mask_ == Mask::Causal) sees.from = keys.first + key - tile * kQueries;
      if (!first_keys_.all()) advance(sees.until, keys, key, tile);
      gradients_of_key(scores + row, grad_probabilities + row, packed.log_sum_exp(tile), packed.delta(tile),
                       extent_.scale_of_two(), extent_.scale(), sees, columns, probabilities + row,
                       grad_scores + row);
    }
    TileProduct<Element>{count, width, columns, columns, width, width, adds}(
        probabilities, packed.grads(tile), keys.grad_values);
    TileProduct<Element>{count, width, columns, columns, width, width, adds}(
        grad_scores, packed.queries(tile), keys.grad_keys);
    pack_rows(grad_scores, columns, count, columns, paired_grad_scores);
    TileProduct<Element>{width,   columns,           inner, padded<Element>(keys.count), columns,
                         columns, packed.begun(tile)}(keys_transposed_.get(), paired_grad_scores,
                                                      packed.grad_queries(tile));
    packed.begin(tile);
  }

  // Over the queries of the tile whose documents begin at the key or before it.
  void advance(std::int64_t& until, const KeyTile<Element>& keys, std::int64_t key, std::int64_t tile) const {
    const auto begins = [&] { return first_keys_.of(keys.sequence, tile * kQueries + until); };
    while (until < extent_.queries_of(tile) && begins() <= keys.first + key) ++until;
  }

  const Extent& extent_;
  Mask mask_;
  FirstKeys first_keys_;
  std::int64_t elements_;
  std::unique_ptr<float[]> floats_;
  std::unique_ptr<Element[]> elements_of_type_, keys_transposed_;
};

// Tensors of one call, by key-value head.
template <class Element>
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
                         tile_size<Element>(extent_), c10::CppTypeToScalarType<Element>::value);
    at::parallel_for(0, heads, 1, [&](std::int64_t begin, std::int64_t end) {
      PackedQueries<Element> packed(extent_, room, at::get_thread_num());
      BackwardTile<Element> tile(extent_, visible_);
      for (std::int64_t place = begin; place < end; ++place) {
        for (std::int64_t member = 0; member < extent_.group(); ++member) {
          one_head(place, member, packed, tile);
        }
      }
      release_products<Element>();
    });
    return result_;
  }

 private:
  // place: sequence · key-value heads + head.
  void one_head(std::int64_t place, std::int64_t member, PackedQueries<Element>& packed,
                BackwardTile<Element>& tile) {
    const std::int64_t sequence = place / extent_.kv_heads,
                       head = place % extent_.kv_heads * extent_.group() + member;
    const std::int64_t row = (sequence * extent_.heads + head) * extent_.queries;
    packed.fill({queries_.at(sequence, head, 0), outputs_.at(sequence, head, 0), grads_.at(sequence, head, 0),
                 queries_.stride(), outputs_.stride(), grads_.stride(), log_sum_exp_ + row});
    for (std::int64_t keys = 0; keys < extent_.key_tiles(); ++keys) {
      tile.against_keys(key_tile(place, keys), packed, member > 0);
    }
    for (std::int64_t queries = 0; queries < extent_.query_tiles(); ++queries) {
      if (!packed.begun(queries))
        std::fill_n(packed.grad_queries(queries), packed.columns(queries) * extent_.width, 0.0f);
      transpose_rows(packed.grad_queries(queries), packed.columns(queries), extent_.width,
                     extent_.queries_of(queries), extent_.width,
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

}  // namespace

AttentionGradients attend_tiled_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                         const at::Tensor& key, const at::Tensor& value,
                                         const AttentionPart& merged, const Visible& visible) {
  if (has_tile_products(at::kBFloat16) && query.scalar_type() == at::kBFloat16)
    return Backward<c10::BFloat16>(grad_output, query, key, value, merged, visible).run();
  const auto single = [](const at::Tensor& x) { return x.to(at::kFloat); };
  return Backward<float>(single(grad_output), single(query), single(key), single(value),
                         {single(merged.output), merged.log_sum_exp}, visible)
      .run();
}

}  // namespace penstock::nn::kernels
