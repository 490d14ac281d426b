// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cpu/attention/amx_attention.h"
#include "nn/kernels/cpu/attention/avx512_attention.h"
#include "nn/kernels/cpu/attention/backward_loop.h"
#include "nn/kernels/cpu/attention/tiled.h"
#include "nn/kernels/cpu/tiled_products.h"

namespace penstock::nn::kernels {
namespace {

// Queries [from, until) of a tile that see a key.
struct SeeingQueries {
  std::int64_t from, until;
};

// P = exp(scale·S − lse) and dS = scale·P·(dP − δ) of one key, for the queries that see it; 0 for the others,
// by selection instead of multiplication: an unseen key may have any score, whose power may not be finite.
// `log_sum_exp` is in base 2.
template <class Element>
PENSTOCK_VECTORISED void gradients_of_key(const float* scores, const float* grad_probabilities,
                                          const float* log_sum_exp, const float* delta, float scale_of_two,
                                          float scale, const SeeingQueries& sees, std::int64_t count,
                                          Element* probabilities, Element* grad_scores) {
  for (std::int64_t i = 0; i < count; ++i) {
    const bool seen = i >= sees.from && i < sees.until;
    const float power = power_of_two(__builtin_fmaf(scale_of_two, scores[i], -log_sum_exp[i]));
    const float grad_score = scale * power * (grad_probabilities[i] - delta[i]);
    probabilities[i] = narrowed_number<Element>(seen ? power : 0.0f);
    grad_scores[i] = narrowed<Element>(seen ? grad_score : 0.0f);
  }
}

// A task's tiles of scores and of the values computed from them.
template <class Element>
class BackwardTile {
 public:
  static constexpr std::int64_t kUnit = kPair<Element>;
  static float query_scale(const Extent&) { return 1.0f; }  // scores' gradients are already scaled

  BackwardTile(const Extent& extent, const Visible& visible)
      : extent_(extent),
        mask_(visible.mask),
        first_keys_(visible),
        elements_(padded<Element>(extent.most_keys()) * padded<Element>(extent.most_queries())),
        floats_(scratch<float>(2 * elements_)),
        elements_of_type_(scratch<Element>(3 * elements_)),
        keys_transposed_(scratch<Element>(padded<Element>(extent.most_keys()) * extent.width)) {}
  ~BackwardTile() { release_products<Element>(); }
  BackwardTile(const BackwardTile&) = delete;
  BackwardTile& operator=(const BackwardTile&) = delete;

  void fill(QueryTiles<Element>& packed, const typename QueryTiles<Element>::Head& head) {
    packed.fill(head, [&](const Element* rows, std::int64_t stride, std::int64_t count, std::int64_t columns,
                          Element* transposed, Element* plain) {
      pack_transposed(rows, stride, count, extent_.width, columns, transposed);
      pack_rows(rows, stride, count, extent_.width, plain);
    });
  }

  // Processes all queries of one head against one tile of keys. `adds`: adds to the gradients of keys and
  // values, else sets them.
  void against_keys(const KeyTile<Element>& keys, QueryTiles<Element>& packed, bool adds) {
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
  // For a first tile that does not cover all keys: its products cannot initialise the sums.
  void begin_gradients(const KeyTile<Element>& keys) {
    std::fill_n(keys.grad_keys, keys.count * extent_.width, 0.0f);
    std::fill_n(keys.grad_values, keys.count * extent_.width, 0.0f);
  }

  // Processes the first `count` keys; no query of the tile sees later ones.
  void against_queries(const KeyTile<Element>& keys, std::int64_t count, QueryTiles<Element>& packed,
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

  // Advances `until` past the queries of the tile whose documents begin at the key or before it.
  void advance(std::int64_t& until, const KeyTile<Element>& keys, std::int64_t key, std::int64_t tile) const {
    const auto begins = [&] { return first_keys_.of(keys.sequence, tile * kQueries + until); };
    while (until < extent_.queries_of(tile) && begins() <= keys.first + key) ++until;
  }

  const Extent& extent_;
  Mask mask_;
  FirstKeys first_keys_;
  std::int64_t elements_;
  Scratch<float> floats_;
  Scratch<Element> elements_of_type_, keys_transposed_;
};

template <class Element>
AttentionGradients backward(const at::Tensor& grad_output, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, const AttentionPart& merged, const Visible& visible) {
  return Backward<Element, BackwardTile<Element>>(grad_output, query, key, value, merged, visible).run();
}

}  // namespace

AttentionGradients attend_tiled_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                         const at::Tensor& key, const at::Tensor& value,
                                         const AttentionPart& merged, const Visible& visible,
                                         AttentionProducts products) {
  switch (products) {
    case AttentionProducts::Avx512:
      return avx512::attend_backward(grad_output, query, key, value, merged, visible);
    case AttentionProducts::Amx:
      return amx::attend_backward(grad_output, query, key, value, merged, visible);
    case AttentionProducts::Avx2:
    case AttentionProducts::Brgemm:
      break;
  }
  if (query.scalar_type() == at::kBFloat16)
    return backward<c10::BFloat16>(grad_output, query, key, value, merged, visible);
  return backward<float>(grad_output, query, key, value, merged, visible);
}

AttentionGradients attend_tiled_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                         const at::Tensor& key, const at::Tensor& value,
                                         const AttentionPart& merged, const Visible& visible) {
  const at::ScalarType type = multiplied_type(query.scalar_type());
  return attend_tiled_backward(grad_output.to(type), query.to(type), key.to(type), value.to(type),
                               {merged.output.to(type), merged.log_sum_exp}, visible,
                               possible_products(type, query.size(-1)).front());
}

}  // namespace penstock::nn::kernels
