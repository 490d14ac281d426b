// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>

#include <array>

#include "nn/kernels/cpu/attention/tiled.h"
#include "nn/kernels/cpu/attention/tiles.h"
#include "nn/kernels/cpu/tiled_products.h"

namespace penstock::nn::kernels {
namespace {

PENSTOCK_VECTORISED float greatest(const float* scores, std::int64_t count) {
  float result = scores[0];
#pragma omp simd reduction(max : result)
  for (std::int64_t i = 0; i < count; ++i) result = scores[i] > result ? scores[i] : result;
  return result;
}

// probabilities = 2^(scale·score − maximum) for the first `seen`, 0 for the rest; their sum, which is not a
// number if one of them is not.
template <class Element>
PENSTOCK_VECTORISED float exponentiate(const float* scores, std::int64_t seen, std::int64_t count,
                                       float scale, float maximum, Element* probabilities) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < seen; ++i) {
    const float probability = power_of_two(__builtin_fmaf(scale, scores[i], -maximum));
    sum += probability;
    probabilities[i] = narrowed_number<Element>(probability);
  }
  for (std::int64_t i = seen; i < count; ++i) probabilities[i] = Element(0);
  return sum;
}

PENSTOCK_VECTORISED void multiply(float* values, std::int64_t count, float factor) {
  for (std::int64_t i = 0; i < count; ++i) values[i] *= factor;
}

// Keys and values of one chunk as right operands, tile by tile.
template <class Element>
class PackedKeys {
 public:
  PackedKeys(const Extent& extent, const at::Tensor& key, const at::Tensor& value)
      : extent_(extent), room_(padded<Element>(extent.most_keys()) * extent.width) {
    const std::int64_t tiles = extent.sequences * extent.kv_heads * extent.key_tiles();
    packed_ = at::empty({tiles, 2, room_}, key.options());
    const auto keys = read_heads<Element>(key), values = read_heads<Element>(value);
    at::parallel_for(0, tiles, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t place = i / extent.key_tiles(), tile = i % extent.key_tiles();
        const std::int64_t sequence = place / extent.kv_heads, head = place % extent.kv_heads;
        const std::int64_t count = extent.keys_of(tile);
        pack_transposed(keys.at(sequence, head, tile * kKeys), keys.stride(), count, extent.width, count,
                        at(place, tile));
        pack_rows(values.at(sequence, head, tile * kKeys), values.stride(), count, extent.width,
                  at(place, tile) + room_);
      }
    });
  }
  // place: sequence · key-value heads + head.
  const Element* keys(std::int64_t place, std::int64_t tile) const { return at(place, tile); }
  const Element* values(std::int64_t place, std::int64_t tile) const { return at(place, tile) + room_; }

 private:
  Element* at(std::int64_t place, std::int64_t tile) const {
    return packed_.mutable_data_ptr<Element>() + (place * extent_.key_tiles() + tile) * 2 * room_;
  }

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

// A task's tile of scores, and the running softmax of its queries.
template <class Element>
class ForwardTile {
 public:
  ForwardTile(const Extent& extent, const PackedKeys<Element>& packed, const Visible& visible)
      : extent_(extent),
        packed_(packed),
        mask_(visible.mask),
        first_keys_(visible),
        scores_(scratch<float>(kQueries * extent.most_keys())),
        probabilities_(scratch<Element>(kQueries * padded<Element>(extent.most_keys()))) {}

  void attend(const QueryTile<Element>& tile, std::int64_t place) {
    maximum_.fill(-INFINITY);
    sum_.fill(0.0f);
    bool running = false;
    const std::int64_t least = std::max<std::int64_t>(first_keys_.of(tile.sequence, tile.first), 0);
    for (std::int64_t keys = least / kKeys; keys < extent_.key_tiles(); ++keys) {
      const std::int64_t count =
          seen_keys(mask_, tile.first + tile.rows - 1, keys * kKeys, extent_.keys_of(keys));
      if (count <= 0 || least >= keys * kKeys + count) continue;
      attend_keys(tile, place, keys, count, running);
      running = true;
    }
    for (std::int64_t row = 0; row < tile.rows; ++row) {
      float* output = tile.output + row * tile.output_stride;
      if (sum_[row] == 0) {  // it sees no key
        std::fill_n(output, extent_.width, 0.0f);
        tile.log_sum_exp[row] = -INFINITY;
        continue;
      }
      multiply(output, extent_.width, 1.0f / sum_[row]);
      tile.log_sum_exp[row] = static_cast<float>(static_cast<double>(maximum_[row]) / kLogOfE +
                                                 std::log(static_cast<double>(sum_[row])));
    }
  }

 private:
  // The first `count` keys of a tile; no query sees later ones.
  void attend_keys(const QueryTile<Element>& tile, std::int64_t place, std::int64_t keys, std::int64_t count,
                   bool running) {
    const std::int64_t inner = padded<Element>(count), width = extent_.width;
    TileProduct<Element>{tile.rows, count, width, tile.query_stride, extent_.keys_of(keys), count, false}(
        tile.query, packed_.keys(place, keys), scores_.get());
    for (std::int64_t row = 0; row < tile.rows; ++row) {
      const std::int64_t seen = seen_keys(mask_, tile.first + row, keys * kKeys, count);
      const std::int64_t from = first_keys_.of(tile.sequence, tile.first + row) - keys * kKeys;
      softmax_row(tile, row, std::max<std::int64_t>(from, 0), seen, count, inner, running);
    }
    TileProduct<Element>{tile.rows, width, inner, inner, width, tile.output_stride, running}(
        probabilities_.get(), packed_.values(place, keys), tile.output);
  }

  // The row sees the tile's keys from `from` to before `seen`.
  void softmax_row(const QueryTile<Element>& tile, std::int64_t row, std::int64_t from, std::int64_t seen,
                   std::int64_t count, std::int64_t inner, bool running) {
    Element* probabilities = probabilities_.get() + row * inner;
    if (from >= seen) {
      std::fill_n(probabilities, inner, Element(0));
      return;
    }
    std::fill_n(probabilities, from, Element(0));
    probabilities += from;
    const float* scores = scores_.get() + row * count + from;
    seen -= from;
    inner -= from;
    const float maximum = std::max(maximum_[row], extent_.scale_of_two() * greatest(scores, seen));
    const float keep = running ? std::exp2(maximum_[row] - maximum) : 0.0f;
    sum_[row] =
        keep * sum_[row] + exponentiate(scores, seen, inner, extent_.scale_of_two(), maximum, probabilities);
    if (running && keep != 1.0f) multiply(tile.output + row * tile.output_stride, extent_.width, keep);
    maximum_[row] = maximum;
  }

  const Extent& extent_;
  const PackedKeys<Element>& packed_;
  Mask mask_;
  FirstKeys first_keys_;
  std::unique_ptr<float[]> scores_;
  std::unique_ptr<Element[]> probabilities_;
  std::array<float, kQueries> maximum_{}, sum_{};  // maximum: of scores as powers of two
};

// The tiles of a head alternate between its beginning and its end, so that consecutive tiles have about equal
// work under the causal mask.
std::int64_t alternating(std::int64_t index, std::int64_t count) {
  return index % 2 == 0 ? index / 2 : count - 1 - index / 2;
}

template <class Element>
AttentionPart forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                      const Visible& visible) {
  const Extent extent(query, key);
  const PackedKeys<Element> packed(extent, key, value);
  const auto options = at::dtype(at::kFloat);
  const at::Tensor by_token =
      at::empty({extent.sequences, extent.queries, extent.heads, extent.width}, options);
  AttentionPart part{by_token.transpose(1, 2),
                     at::empty({extent.sequences, extent.heads, extent.queries}, options)};
  const auto queries = read_heads<Element>(query);
  const Heads<float> outputs{part.output.data_ptr<float>(), part.output.strides()};
  float* log_sum_exp = part.log_sum_exp.data_ptr<float>();
  const std::int64_t tiles = extent.query_tiles();
  at::parallel_for(0, extent.sequences * extent.heads * tiles, 1, [&](std::int64_t begin, std::int64_t end) {
    ForwardTile<Element> work(extent, packed, visible);
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t place = task / tiles, tile = alternating(task % tiles, tiles);
      const std::int64_t sequence = place / extent.heads, head = place % extent.heads;
      const std::int64_t first = tile * kQueries;
      work.attend(
          {sequence, queries.at(sequence, head, first), queries.stride(), first, extent.queries_of(tile),
           outputs.at(sequence, head, first), outputs.stride(), log_sum_exp + place * extent.queries + first},
          sequence * extent.kv_heads + head / extent.group());
    }
    release_products<Element>();
  });
  return part;
}

}  // namespace

AttentionPart attend_tiled(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const Visible& visible) {
  if (has_tile_products(at::kBFloat16) && query.scalar_type() == at::kBFloat16)
    return forward<c10::BFloat16>(query, key, value, visible);
  return forward<float>(query.to(at::kFloat), key.to(at::kFloat), value.to(at::kFloat), visible);
}

}  // namespace penstock::nn::kernels
