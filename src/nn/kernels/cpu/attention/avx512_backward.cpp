// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cpu/attention/avx512_backward.h"

#include "nn/kernels/cpu/attention/avx512_scores.h"
#include "nn/kernels/cpu/attention/backward_loop.h"

namespace penstock::nn::kernels::avx512 {
namespace {

using Element = c10::BFloat16;
constexpr std::int64_t kQueryPanels = kQueries / kPanel;

// sums [8, 32], of rows `stride` apart, += or = a [8, 2·steps] · b [2·steps, 32].
PENSTOCK_AVX512_BF16 void add_block(const Word* a, std::int64_t a_stride, std::int64_t steps, const Word* b,
                                    bool adds, float* to, std::int64_t stride) {
  __m512 sums[kBlock][2];
  clear(sums);
  if (adds) {
#pragma GCC unroll 16
    for (int row = 0; row < kBlock; ++row) {
      sums[row][0] = _mm512_loadu_ps(to + row * stride);
      sums[row][1] = _mm512_loadu_ps(to + row * stride + 16);
    }
  }
  multiply_block(a, a_stride, steps, b, sums);
#pragma GCC unroll 16
  for (int row = 0; row < kBlock; ++row) {
    _mm512_storeu_ps(to + row * stride, sums[row][0]);
    _mm512_storeu_ps(to + row * stride + 16, sums[row][1]);
  }
}

PENSTOCK_AVX512_BF16 void score_whole(const ScoreBlock& block, const SeenKeys& seen, std::int64_t key) {
  score_block<true>(block, seen, key);
}
PENSTOCK_AVX512_BF16 void score_masked(const ScoreBlock& block, const SeenKeys& seen, std::int64_t key) {
  score_block<false>(block, seen, key);
}

// A task's tile of keys, and what is computed of it and a tile of queries.
class BackwardTile {
 public:
  static constexpr std::int64_t kUnit = kPanel;
  static float query_scale(const Extent& extent) { return extent.scale(); }

  BackwardTile(const Extent& extent, const Visible& visible)
      : extent_(extent),
        mask_(visible.mask),
        first_keys_(visible),
        keys_(scratch<Element>(3 * kKeys * extent.width)),
        values_(keys_.get() + kKeys * extent.width),
        keys_transposed_(values_ + kKeys * extent.width),
        sums_(scratch<float>(2 * kKeys * extent.width)),
        probabilities_(scratch<Element>(3 * kKeys * kQueries)),
        grad_scores_(probabilities_.get() + kKeys * kQueries),
        paired_(grad_scores_ + kKeys * kQueries) {}

  void fill(QueryTiles<Element>& packed, const QueryTiles<Element>::Head& head) {
    packed.fill(head, [&](const Element* rows, std::int64_t stride, std::int64_t count, std::int64_t columns,
                          Element* transposed, Element* plain) {
      const std::int64_t width = extent_.width;
      for (std::int64_t first = 0; first < columns; first += kPanel) {
        pack_transposed(rows + first * stride, stride, std::clamp<std::int64_t>(count - first, 0, kPanel),
                        width, kPanel, transposed + first * width);
      }
      if (count < columns) std::fill_n(plain, columns * width, Element(0));
      for (std::int64_t first = 0; first < width; first += kPanel)
        pack_rows(rows + first, stride, count, kPanel, plain + first * columns);
    });
  }

  void against_keys(const KeyTile<Element>& keys, QueryTiles<Element>& packed, bool adds) {
    begin(keys);
    for (std::int64_t tile = 0; tile < extent_.query_tiles(); ++tile) against_queries(keys, packed, tile);
    write_gradients(keys, adds);
  }

 private:
  void begin(const KeyTile<Element>& keys) {
    const std::int64_t width = extent_.width;
    const auto copy = [&](const Element* rows, std::int64_t stride, Element* to) {
      for (std::int64_t row = 0; row < keys.count; ++row)
        std::copy_n(rows + row * stride, width, to + row * width);
      std::fill_n(to + keys.count * width, (kKeys - keys.count) * width, Element(0));
    };
    copy(keys.keys, keys.key_stride, keys_.get());
    copy(keys.values, keys.value_stride, values_);
    transpose_rows(keys.keys, keys.key_stride, keys.count, width, kKeys, keys_transposed_);
    std::fill_n(sums_.get(), 2 * kKeys * width, 0.0f);
  }

  // Sets them, or adds to them; the keys' is still to be scaled.
  void write_gradients(const KeyTile<Element>& keys, bool adds) const {
    const float *of_keys = sums_.get(), *of_values = of_keys + kKeys * extent_.width;
    const float scale = extent_.scale();
    for (std::int64_t i = 0; i < keys.count * extent_.width; ++i) {
      keys.grad_keys[i] = (adds ? keys.grad_keys[i] : 0.0f) + scale * of_keys[i];
      keys.grad_values[i] = (adds ? keys.grad_values[i] : 0.0f) + of_values[i];
    }
  }

  // Of the tile's panel of queries from `first` on: blocks of eight keys of which one sees something, and
  // `seen`; all of `whole` are seen by all.
  Range keys_of_panel(const KeyTile<Element>& keys, std::int64_t first, std::int64_t end, SeenKeys& seen,
                      Range& whole) const {
    const std::int64_t last_key = keys.first + keys.count - 1;
    for (std::int64_t i = 0; i < kPanel; ++i) {
      const std::int64_t query = first + i, causal = mask_ == Mask::Causal ? query : last_key;
      const bool real = query < end;
      seen.first[i] =
          real ? static_cast<std::int32_t>(std::max<std::int64_t>(first_keys_.of(keys.sequence, query), 0))
               : 0;
      seen.last[i] = real ? static_cast<std::int32_t>(std::min(causal, last_key)) : -1;
    }
    const auto in_tile = [&](std::int64_t key) {
      return std::clamp<std::int64_t>(key - keys.first, 0, keys.count);
    };
    const std::int64_t last = std::min(first + kPanel, end) - 1 - first;  // the panel's last query
    whole = {in_tile(seen.first[last]), in_tile(seen.last[0] + 1)};
    if (last + 1 < kPanel) whole = {};
    const Range some{in_tile(seen.first[0]), in_tile(seen.last[last] + 1)};
    if (some.none()) return {};
    return {some.from / kBlock * kBlock, up(some.until, kBlock)};
  }

  void against_queries(const KeyTile<Element>& keys, QueryTiles<Element>& packed, std::int64_t tile) {
    const std::int64_t first = tile * kQueries, end = first + extent_.queries_of(tile);
    std::array<Range, kQueryPanels> ranges{};
    for (std::int64_t panel = 0; panel * kPanel < end - first; ++panel) {
      SeenKeys seen;
      Range whole;
      Range& range = ranges[static_cast<std::size_t>(panel)];
      range = keys_of_panel(keys, first + panel * kPanel, end, seen, whole);
      score_panel(keys, packed, tile, panel, range, whole, seen);
    }
    add_key_gradients(packed.grads(tile), probabilities_.get(), sums_.get() + kKeys * extent_.width, ranges,
                      packed.columns(tile));
    add_key_gradients(packed.queries(tile), grad_scores_, sums_.get(), ranges, packed.columns(tile));
    add_query_gradients(packed, tile, ranges);
  }

  void score_panel(const KeyTile<Element>& keys, const QueryTiles<Element>& packed, std::int64_t tile,
                   std::int64_t panel, const Range& range, const Range& whole, const SeenKeys& seen) {
    const std::int64_t columns = packed.columns(tile), width = extent_.width, query = panel * kPanel;
    for (std::int64_t key = range.from; key < range.until; key += kScoreRows) {
      const ScoreBlock block{words(keys_.get() + key * width),
                             words(values_ + key * width),
                             words(packed.queries_transposed(tile) + query * width),
                             words(packed.grads_transposed(tile) + query * width),
                             width / 2,
                             packed.log_sum_exp(tile) + query,
                             packed.delta(tile) + query,
                             extent_.scale_of_two(),
                             columns,
                             probabilities_.get() + key * columns + query,
                             grad_scores_ + key * columns + query,
                             reinterpret_cast<Word*>(paired_ + query * kKeys + key * kPanel)};
      const bool all = whole.from <= key && key + kScoreRows <= whole.until;
      (all ? score_whole : score_masked)(block, seen, keys.first + key);
    }
  }

  // sums [keys, d] += left [keys, columns] · right, the panels of columns of a tile's queries.
  void add_key_gradients(const Element* right, const Element* left, float* sums,
                         const std::array<Range, kQueryPanels>& ranges, std::int64_t columns) const {
    for (std::int64_t column = 0; column < extent_.width; column += kPanel) {
      for (std::int64_t key = 0; key < kKeys; key += kBlock) {
        std::int64_t from = 0, until = 0;  // panels that hold scores of these keys; they follow each other
        for (std::int64_t panel = 0; panel < kQueryPanels; ++panel) {
          const Range& range = ranges[static_cast<std::size_t>(panel)];
          if (key < range.from || key >= range.until) continue;
          if (until == 0) from = panel;
          until = panel + 1;
        }
        if (until == 0) continue;
        add_block(words(left + key * columns + from * kPanel), columns / 2, (until - from) * kPanel / 2,
                  words(right + column * columns + from * kPanel * kPanel), true,
                  sums + key * extent_.width + column, extent_.width);
      }
    }
  }

  void add_query_gradients(QueryTiles<Element>& packed, std::int64_t tile,
                           const std::array<Range, kQueryPanels>& ranges) const {
    const std::int64_t columns = packed.columns(tile);
    bool any = false;
    for (const Range& range : ranges) any = any || !range.none();
    if (!any) return;
    for (std::int64_t panel = 0; panel * kPanel < columns; ++panel) {
      const Range& range = ranges[static_cast<std::size_t>(panel)];
      for (std::int64_t row = 0; row < extent_.width; row += kBlock) {
        add_block(words(keys_transposed_ + row * kKeys + range.from), kKeys / 2,
                  std::max<std::int64_t>(range.until - range.from, 0) / 2,
                  words(paired_ + panel * kPanel * kKeys + range.from * kPanel), packed.begun(tile),
                  packed.grad_queries(tile) + row * columns + panel * kPanel, columns);
      }
    }
    packed.begin(tile);
  }

  const Extent& extent_;
  Mask mask_;
  FirstKeys first_keys_;
  std::unique_ptr<Element[]> keys_;
  Element *values_, *keys_transposed_;
  std::unique_ptr<float[]> sums_;  // [kKeys, d] of keys, then of values
  std::unique_ptr<Element[]> probabilities_;
  Element *grad_scores_, *paired_;
};

}  // namespace

AttentionGradients attend_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                   const at::Tensor& key, const at::Tensor& value,
                                   const AttentionPart& merged, const Visible& visible) {
  return Backward<Element, BackwardTile>(grad_output, query, key, value, merged, visible).run();
}

}  // namespace penstock::nn::kernels::avx512
