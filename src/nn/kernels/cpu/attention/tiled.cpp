// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "nn/kernels/cpu/attention/amx_attention.h"
#include "nn/kernels/cpu/attention/avx2_attention.h"
#include "nn/kernels/cpu/attention/avx512_attention.h"
#include "nn/kernels/cpu/attention/forward_loop.h"
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

// probabilities = 2^(scale·score − maximum) for the first `seen`, 0 for the rest. Returns their sum, NaN if
// one of them is NaN.
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
  PackedKeys(const Extent& extent, const at::Tensor& key, const at::Tensor& value) : packed_(extent, key) {
    packed_.fill(key, value, [&](const auto& keys, const auto& values, std::int64_t count, Element* to) {
      pack_transposed(keys.rows, keys.stride, count, extent.width, count, to);
      pack_rows(values.rows, values.stride, count, extent.width, to + packed_.room());
    });
  }
  const Element* keys(std::int64_t place, std::int64_t tile) const { return packed_.at(place, tile); }
  const Element* values(std::int64_t place, std::int64_t tile) const {
    return packed_.at(place, tile) + packed_.room();
  }

 private:
  KeyRoom<Element> packed_;
};

// A task's tile of scores, and the running softmax of its queries.
template <class Element>
class ForwardTile {
 public:
  static constexpr std::int64_t kTile = kQueries;

  ForwardTile(const Extent& extent, const PackedKeys<Element>& packed, const Visible& visible)
      : extent_(extent),
        packed_(packed),
        mask_(visible.mask),
        first_keys_(visible),
        scores_(scratch<float>(kQueries * extent.most_keys())),
        probabilities_(scratch<Element>(kQueries * padded<Element>(extent.most_keys()))) {}
  ~ForwardTile() { release_products<Element>(); }
  ForwardTile(const ForwardTile&) = delete;
  ForwardTile& operator=(const ForwardTile&) = delete;

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
      if (sum_[row] == 0) std::fill_n(output, extent_.width, 0.0f);  // the query sees no key
      if (sum_[row] != 0) multiply(output, extent_.width, 1.0f / sum_[row]);
      tile.log_sum_exp[row] = log_sum_exp(maximum_[row], sum_[row]);
    }
  }

 private:
  // Attends the first `count` keys of a tile; no query sees later ones.
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

  // The row sees the tile's keys [from, seen).
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
  Scratch<float> scores_;
  Scratch<Element> probabilities_;
  std::array<float, kQueries> maximum_{}, sum_{};  // maximum in base 2
};

template <class Element>
AttentionPart forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                      const Visible& visible) {
  return attend_by_query_tiles<Element, PackedKeys<Element>, ForwardTile<Element>>(query, key, value,
                                                                                   visible);
}

// Softmax of rows of 256 keys.
template <class Element>
void softmax_of_rows(const at::Tensor& scores, at::Tensor& probabilities) {
  const float* from = scores.const_data_ptr<float>();
  const float scale = static_cast<float>(kLogOfE);
  auto* to = probabilities.data_ptr<Element>();
  for (std::int64_t i = 0; i < scores.numel(); i += kKeys)
    exponentiate(from + i, kKeys, kKeys, scale, scale * greatest(from + i, kKeys), to + i);
}

}  // namespace

AttentionPart attend_tiled(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const Visible& visible, AttentionProducts products) {
  switch (products) {
    case AttentionProducts::Avx2:
      return avx2::attend(query, key, value, visible);
    case AttentionProducts::Avx512:
      return avx512::attend(query, key, value, visible);
    case AttentionProducts::Amx:
      return amx::attend(query, key, value, visible);
    case AttentionProducts::Brgemm:
      break;
  }
  if (query.scalar_type() == at::kBFloat16) return forward<c10::BFloat16>(query, key, value, visible);
  return forward<float>(query, key, value, visible);
}

AttentionPart attend_tiled(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const Visible& visible) {
  const at::ScalarType type = multiplied_type(query.scalar_type());
  return attend_tiled(query.to(type), key.to(type), value.to(type), visible,
                      possible_products(type, query.size(-1)).front());
}

void softmax_tile(const at::Tensor& scores, at::Tensor& probabilities) {
  switch (possible_products(probabilities.scalar_type(), kPanel).front()) {
    case AttentionProducts::Avx2:
      return avx2::softmax_tile(scores, probabilities);
    case AttentionProducts::Avx512:
      return avx512::softmax_tile(scores, probabilities);
    case AttentionProducts::Amx:
      return amx::softmax_tile(scores, probabilities);
    case AttentionProducts::Brgemm:
      break;
  }
  if (probabilities.scalar_type() == at::kBFloat16)
    return softmax_of_rows<c10::BFloat16>(scores, probabilities);
  softmax_of_rows<float>(scores, probabilities);
}

}  // namespace penstock::nn::kernels
