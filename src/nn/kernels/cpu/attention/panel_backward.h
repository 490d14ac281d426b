// SPDX-License-Identifier: Apache-2.0
// The backward of tiled attention with our own products (avx512_attention.cpp, amx_attention.cpp).
#pragma once

#include <array>

#include "nn/kernels/cpu/attention/backward_loop.h"
#include "nn/kernels/cpu/attention/panels.h"

namespace penstock::nn::kernels {

// A task's tile of keys, and the results for it and a few tiles of queries.
//
// Products::add() is as in panel_forward.h. Keys are processed Products::kRows (a multiple of kUnit) at a
// time, so that their scores and the gradients of their probabilities stay in the L1 cache, and tiles of
// queries Products::kTiles at a time, so that sums are loaded and stored less often. An object of Products
// lives as long as the task.
template <class Products>
class PanelBackward {
  using Element = typename Products::Element;

 public:
  static constexpr std::int64_t kUnit = kPanel;
  static float query_scale(const Extent& extent) { return extent.scale(); }

  PanelBackward(const Extent& extent, const Visible& visible)
      : extent_(extent),
        mask_(visible.mask),
        first_keys_(visible),
        keys_(scratch<Element>(3 * kKeys * extent.width)),
        values_(keys_.get() + kKeys * extent.width),
        keys_transposed_(values_ + kKeys * extent.width),
        sums_(scratch<float>(2 * kKeys * extent.width)) {}

  void fill(QueryTiles<Element>& packed, const typename QueryTiles<Element>::Head& head) {
    packed.fill(head, [&](const Element* rows, std::int64_t stride, std::int64_t count, std::int64_t columns,
                          Element* transposed, Element* plain) {
      const std::int64_t width = extent_.width;
      for (std::int64_t first = 0; first < columns; first += kPanel) {
        Products::pack_panel(rows + first * stride, stride,
                             std::clamp<std::int64_t>(count - first, 0, kPanel), width,
                             transposed + first * width);
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
  static constexpr std::int64_t kPair = kernels::kPair<Element>, kPanelWords = kPanel / kPair;
  static constexpr std::int64_t kTilePanels = kQueries / kPanel, kPanels = Products::kTiles * kTilePanels;
  static constexpr std::int64_t kPanelRoom = kKeys * kPanel;  // elements of a panel's probabilities
  using Ranges = std::array<Range, kPanels>;                  // of keys, by panel of queries

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

  // Sets the gradients or adds to them. Scales the keys' sums, which are not scaled yet.
  void write_gradients(const KeyTile<Element>& keys, bool adds) const {
    const float *of_keys = sums_.get(), *of_values = of_keys + kKeys * extent_.width;
    const float scale = extent_.scale();
    for (std::int64_t i = 0; i < keys.count * extent_.width; ++i) {
      keys.grad_keys[i] = (adds ? keys.grad_keys[i] : 0.0f) + scale * of_keys[i];
      keys.grad_values[i] = (adds ? keys.grad_values[i] : 0.0f) + of_values[i];
    }
  }

  // Processes Products::kTiles tiles of queries from `tile` on.
  void against_queries(const KeyTile<Element>& keys, QueryTiles<Element>& packed, std::int64_t tile) {
    const std::int64_t first = tile * kQueries, end = std::min(extent_.queries, first + kColumns);
    Ranges ranges{};
    bool any = false;
    for (std::int64_t panel = 0; panel * kPanel < end - first; ++panel) {
      const PanelKeys sees(mask_, first_keys_, {keys.sequence, first + panel * kPanel, end}, keys.first,
                           keys.count, Products::kUnit);
      ranges[static_cast<std::size_t>(panel)] = sees.some;
      score_panel(keys, packed, tile, panel, sees);
      any = any || !sees.some.none();
    }
    if (!any) return;
    const auto grads = [&](std::int64_t at) { return packed.grads(at); };
    const auto queries = [&](std::int64_t at) { return packed.queries(at); };
    add_key_gradients(packed, tile, ranges, probabilities_.get(), grads, sums_.get() + kKeys * extent_.width);
    add_key_gradients(packed, tile, ranges, grad_scores_, queries, sums_.get());
    for (std::int64_t i = 0; i < Products::kTiles && tile + i < extent_.query_tiles(); ++i)
      add_query_gradients(packed, tile + i, std::span(ranges).subspan(i * kTilePanels, kTilePanels),
                          paired_ + i * kTilePanels * kPanelRoom);
  }

  // Position of a panel of queries, counted from a tile on.
  struct Place {
    std::int64_t tile, row;
  };
  static Place place_of(std::int64_t tile, std::int64_t panel) {
    return {tile + panel / kTilePanels, panel % kTilePanels * kPanel};
  }

  void score_panel(const KeyTile<Element>& keys, const QueryTiles<Element>& packed, std::int64_t tile,
                   std::int64_t panel, const PanelKeys& sees) {
    const auto [at, row] = place_of(tile, panel);
    const std::int64_t width = extent_.width;
    float *scores = products_of_scores_.get(), *grads = scores + Products::kRows * kPanel;
    for (std::int64_t key = sees.some.from; key < sees.some.until; key += Products::kRows) {
      const std::int64_t rows = std::min(Products::kRows, sees.some.until - key);
      multiply(keys_.get() + key * width, packed.queries_transposed(at) + row * width, rows, scores);
      multiply(values_ + key * width, packed.grads_transposed(at) + row * width, rows, grads);
      const std::int64_t results = panel * kPanelRoom + key * kPanel;
      Products::write_scores({{scores, rows, sees.whole_of(key, rows, kPair), keys.first + key, sees.seen,
                               extent_.scale_of_two()},
                              grads,
                              packed.log_sum_exp(at) + row,
                              packed.delta(at) + row,
                              words(probabilities_.get() + results),
                              words(grad_scores_ + results),
                              words(paired_ + results)});
    }
  }

  // to [rows, 32] = left [rows, d] · panel [d, 32]
  void multiply(const Element* left, const Element* panel, std::int64_t rows, float* to) {
    const std::int64_t steps = extent_.width / kPair;
    const Segment segment{{words(left), steps}, words(panel), steps};
    products_.add(std::span(&segment, 1), rows, false, to, kPanel);
  }

  // The consecutive panels [from, until) that hold scores of a key, and the next key for which this range
  // changes.
  struct Holders {
    std::int64_t from = 0, until = 0, next;
  };
  static Holders holders_of(const Ranges& ranges, std::int64_t key) {
    Holders result{.next = kKeys};
    for (std::int64_t panel = 0; panel < kPanels; ++panel) {
      const Range& range = ranges[static_cast<std::size_t>(panel)];
      if (key < range.from) result.next = std::min(result.next, range.from);
      if (key < range.from || key >= range.until) continue;
      result.next = std::min(result.next, range.until);
      if (result.until == 0) result.from = panel;
      result.until = panel + 1;
    }
    return result;
  }

  // sums [keys, d] += left [keys, columns] · right [columns, d] over the columns of kTiles tiles of queries.
  template <class Right>
  void add_key_gradients(const QueryTiles<Element>& packed, std::int64_t tile, const Ranges& ranges,
                         const Element* left, Right&& right, float* sums) {
    for (std::int64_t key = 0, end = 0; key < kKeys; key = end) {
      const auto [from, until, next] = holders_of(ranges, key);
      end = until == 0 ? next : std::min(next, key + Products::kRows);
      for (std::int64_t column = 0; until > 0 && column < extent_.width; column += kPanel) {
        std::array<Segment, kPanels> segments;
        for (std::int64_t panel = from; panel < until; ++panel) {
          const auto [at, row] = place_of(tile, panel);
          segments[static_cast<std::size_t>(panel - from)] = {
              {words(left + panel * kPanelRoom + key * kPanel), kPanelWords},
              words(right(at) + column * packed.columns(at) + row * kPanel),
              kPanelWords};
        }
        products_.add(std::span(segments.data(), static_cast<std::size_t>(until - from)), end - key, true,
                      sums + key * extent_.width + column, extent_.width);
      }
    }
  }

  // `paired`: gradients of the tile's scores, as a right operand.
  void add_query_gradients(QueryTiles<Element>& packed, std::int64_t tile, std::span<const Range> ranges,
                           const Element* paired) {
    const std::int64_t columns = packed.columns(tile);
    if (std::ranges::all_of(ranges, &Range::none)) return;
    for (std::int64_t panel = 0; panel * kPanel < columns; ++panel) {
      const Range& range = ranges[static_cast<std::size_t>(panel)];
      for (std::int64_t row = 0; row < extent_.width; row += Products::kRows) {
        const Segment segment{{words(keys_transposed_ + row * kKeys + range.from), kKeys / kPair},
                              words(paired + panel * kPanelRoom + range.from * kPanel),
                              std::max<std::int64_t>(range.count(), 0) / kPair};
        products_.add(std::span(&segment, 1), std::min(Products::kRows, extent_.width - row),
                      packed.begun(tile), packed.grad_queries(tile) + row * columns + panel * kPanel,
                      columns);
      }
    }
    packed.begin(tile);
  }

  static constexpr std::int64_t kColumns = Products::kTiles * kQueries;

  Products products_;
  const Extent& extent_;
  Mask mask_;
  FirstKeys first_keys_;
  Scratch<Element> keys_;
  Element *values_, *keys_transposed_;
  Scratch<float> sums_;  // [kKeys, d] for keys, then for values
  Scratch<float> products_of_scores_ = scratch<float>(2 * Products::kRows * kPanel);
  // [kKeys, 32] per panel of queries. In f32 grad_scores_ is already a right operand, so paired_ is the same.
  Scratch<Element> probabilities_ = scratch<Element>((kPair == 1 ? 2 : 3) * kPanels * kPanelRoom);
  Element* grad_scores_ = probabilities_.get() + kPanels * kPanelRoom;
  Element* paired_ = kPair == 1 ? grad_scores_ : grad_scores_ + kPanels * kPanelRoom;
};

template <class Products>
AttentionGradients attend_panels_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                          const at::Tensor& key, const at::Tensor& value,
                                          const AttentionPart& merged, const Visible& visible) {
  return Backward<typename Products::Element, PanelBackward<Products>>(grad_output, query, key, value, merged,
                                                                       visible)
      .run();
}

}  // namespace penstock::nn::kernels
