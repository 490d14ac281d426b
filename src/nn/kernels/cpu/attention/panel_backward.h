// SPDX-License-Identifier: Apache-2.0
// The backward of tiled attention in bf16 by processors' own products (avx512_backward.cpp,
// amx_backward.cpp), over the same panels as the forward.
#pragma once

#include <span>

#include "nn/kernels/cpu/attention/avx512_scores.h"
#include "nn/kernels/cpu/attention/backward_loop.h"

namespace penstock::nn::kernels {

// Of an inner dimension: rows of the left operand, a panel of the right one, and their words.
struct Segment {
  const avx512::Word *left, *panel;
  std::int64_t words;
};

// A task's tile of keys, and what is computed of it and a few tiles of queries.
//
// Products::score(ScoreBlock, SeenKeys, first key, whether all is seen) takes Products::kScoreRows keys;
// Products::add(segments, words from row to row of the left operand, whether to add, sums, floats from row to
// row) sums a block of Products::kRows rows and a panel's columns. Products::kTiles tiles of queries are
// taken at once, so that sums are loaded and stored more seldom. An object of Products lives as long as the
// task.
template <class Products>
class PanelBackward {
  using Element = c10::BFloat16;

 public:
  static constexpr std::int64_t kUnit = avx512::kPanel;
  static float query_scale(const Extent& extent) { return extent.scale(); }

  PanelBackward(const Extent& extent, const Visible& visible)
      : extent_(extent),
        mask_(visible.mask),
        first_keys_(visible),
        keys_(scratch<Element>(3 * kKeys * extent.width)),
        values_(keys_.get() + kKeys * extent.width),
        keys_transposed_(values_ + kKeys * extent.width),
        sums_(scratch<float>(2 * kKeys * extent.width)),
        probabilities_(scratch<Element>(3 * kKeys * kColumns)),
        grad_scores_(probabilities_.get() + kKeys * kColumns),
        paired_(grad_scores_ + kKeys * kColumns) {}

  void fill(QueryTiles<Element>& packed, const typename QueryTiles<Element>::Head& head) {
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
    for (std::int64_t tile = 0; tile < extent_.query_tiles(); tile += Products::kTiles)
      against_queries(keys, packed, tile);
    write_gradients(keys, adds);
  }

 private:
  using Range = avx512::Range;
  static constexpr std::int64_t kPanel = avx512::kPanel, kRows = Products::kRows;
  static constexpr std::int64_t kTilePanels = kQueries / kPanel, kPanels = Products::kTiles * kTilePanels;
  static constexpr std::int64_t kColumns = Products::kTiles * kQueries;  // of probabilities
  using Ranges = std::array<Range, kPanels>;                             // of keys, by panel of queries

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

  // Of the panel of queries from `first` on: blocks of keys of which one sees something, and `seen`; all of
  // `whole` are seen by all.
  Range keys_of_panel(const KeyTile<Element>& keys, std::int64_t first, std::int64_t end,
                      avx512::SeenKeys& seen, Range& whole) const {
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
    return {some.from / kRows * kRows, avx512::up(some.until, kRows)};
  }

  // Where a panel of queries, counted from a tile on, is.
  struct Place {
    std::int64_t tile, row;  // first row of the tile
  };
  static Place place_of(std::int64_t tile, std::int64_t panel) {
    return {tile + panel / kTilePanels, panel % kTilePanels * kPanel};
  }

  // The tiles of queries from `tile` on that are taken at once.
  void against_queries(const KeyTile<Element>& keys, QueryTiles<Element>& packed, std::int64_t tile) {
    const std::int64_t first = tile * kQueries, end = std::min(extent_.queries, first + kColumns);
    Ranges ranges{};
    bool any = false;
    for (std::int64_t panel = 0; panel * kPanel < end - first; ++panel) {
      avx512::SeenKeys seen;
      Range whole;
      Range& range = ranges[static_cast<std::size_t>(panel)];
      range = keys_of_panel(keys, first + panel * kPanel, end, seen, whole);
      score_panel(keys, packed, tile, panel, range, whole, seen);
      any = any || !range.none();
    }
    if (!any) return;
    const auto grads = [&](std::int64_t at) { return packed.grads(at); };
    const auto queries = [&](std::int64_t at) { return packed.queries(at); };
    add_key_gradients(packed, tile, ranges, probabilities_.get(), grads, sums_.get() + kKeys * extent_.width);
    add_key_gradients(packed, tile, ranges, grad_scores_, queries, sums_.get());
    for (std::int64_t i = 0; i < Products::kTiles && tile + i < extent_.query_tiles(); ++i)
      add_query_gradients(packed, tile + i, std::span(ranges).subspan(i * kTilePanels, kTilePanels),
                          paired_ + i * kQueries * kKeys);
  }

  void score_panel(const KeyTile<Element>& keys, const QueryTiles<Element>& packed, std::int64_t tile,
                   std::int64_t panel, const Range& range, const Range& whole, const avx512::SeenKeys& seen) {
    const auto [at, row] = place_of(tile, panel);
    const std::int64_t width = extent_.width, column = panel * kPanel;
    constexpr std::int64_t kStep = Products::kScoreRows;
    for (std::int64_t key = range.from; key < range.until; key += kStep) {
      const avx512::ScoreBlock block{
          avx512::words(keys_.get() + key * width),
          avx512::words(values_ + key * width),
          avx512::words(packed.queries_transposed(at) + row * width),
          avx512::words(packed.grads_transposed(at) + row * width),
          width / 2,
          packed.log_sum_exp(at) + row,
          packed.delta(at) + row,
          extent_.scale_of_two(),
          kColumns,
          probabilities_.get() + key * kColumns + column,
          grad_scores_ + key * kColumns + column,
          reinterpret_cast<avx512::Word*>(paired_ + column * kKeys + key * kPanel)};
      products_.score(block, seen, keys.first + key, whole.from <= key && key + kStep <= whole.until);
    }
  }

  // sums [keys, d] += left [keys, columns] · right, the panels of columns of some tiles' queries.
  template <class Right>
  void add_key_gradients(const QueryTiles<Element>& packed, std::int64_t tile, const Ranges& ranges,
                         const Element* left, Right&& right, float* sums) {
    for (std::int64_t key = 0; key < kKeys; key += kRows) {
      std::int64_t from = 0, until = 0;  // panels that hold scores of these keys; they follow each other
      for (std::int64_t panel = 0; panel < kPanels; ++panel) {
        const Range& range = ranges[static_cast<std::size_t>(panel)];
        if (key < range.from || key >= range.until) continue;
        if (until == 0) from = panel;
        until = panel + 1;
      }
      for (std::int64_t column = 0; until > 0 && column < extent_.width; column += kPanel) {
        std::array<Segment, Products::kTiles> segments;
        std::size_t count = 0;
        for (std::int64_t panel = from, next = from; panel < until; panel = next) {
          const auto [at, row] = place_of(tile, panel);
          next = std::min(until, panel / kTilePanels * kTilePanels + kTilePanels);  // to the tile's end
          segments[count++] = {avx512::words(left + key * kColumns + panel * kPanel),
                               avx512::words(right(at) + column * packed.columns(at) + row * kPanel),
                               (next - panel) * kPanel / 2};
        }
        products_.add(std::span(segments.data(), count), kColumns / 2, true,
                      sums + key * extent_.width + column, extent_.width);
      }
    }
  }

  // `paired`: gradients of the tile's scores.
  void add_query_gradients(QueryTiles<Element>& packed, std::int64_t tile, std::span<const Range> ranges,
                           const Element* paired) {
    const std::int64_t columns = packed.columns(tile);
    if (std::ranges::all_of(ranges, &Range::none)) return;
    for (std::int64_t panel = 0; panel * kPanel < columns; ++panel) {
      const Range& range = ranges[static_cast<std::size_t>(panel)];
      for (std::int64_t row = 0; row < extent_.width; row += kRows) {
        const Segment segment{avx512::words(keys_transposed_ + row * kKeys + range.from),
                              avx512::words(paired + panel * kPanel * kKeys + range.from * kPanel),
                              std::max<std::int64_t>(range.until - range.from, 0) / 2};
        products_.add(std::span(&segment, 1), kKeys / 2, packed.begun(tile),
                      packed.grad_queries(tile) + row * columns + panel * kPanel, columns);
      }
    }
    packed.begin(tile);
  }

  Products products_;
  const Extent& extent_;
  Mask mask_;
  FirstKeys first_keys_;
  Scratch<Element> keys_;
  Element *values_, *keys_transposed_;
  Scratch<float> sums_;  // [kKeys, d] of keys, then of values
  Scratch<Element> probabilities_;
  Element *grad_scores_, *paired_;
};

template <class Products>
AttentionGradients attend_panels_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                          const at::Tensor& key, const at::Tensor& value,
                                          const AttentionPart& merged, const Visible& visible) {
  return Backward<c10::BFloat16, PanelBackward<Products>>(grad_output, query, key, value, merged, visible)
      .run();
}

}  // namespace penstock::nn::kernels
