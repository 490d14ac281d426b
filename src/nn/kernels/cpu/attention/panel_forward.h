// SPDX-License-Identifier: Apache-2.0
// The forward of tiled attention in bf16 by processors' own products (avx512_forward.cpp, amx_forward.cpp):
// blocks of a few queries, whose scores stay in a near cache, against one tile of keys after another.
#pragma once

#include <ATen/ops/empty.h>

#include "nn/kernels/cpu/attention/avx512_softmax.h"
#include "nn/kernels/cpu/attention/forward_loop.h"

namespace penstock::nn::kernels {

// Keys of one chunk in panels of keys, values in panels of their columns, tile by tile.
class Panels {
 public:
  Panels(const Extent& extent, const at::Tensor& key, const at::Tensor& value) : packed_(extent, key) {
    using avx512::kPanel;
    packed_.fill(key, value, [&](const auto& keys, const auto& values, std::int64_t count, auto* to) {
      for (std::int64_t first = 0; first < count; first += kPanel) {
        pack_transposed(keys.rows + first * keys.stride, keys.stride, std::min(kPanel, count - first),
                        extent.width, kPanel, to + first * extent.width);
      }
      const std::int64_t rows = avx512::up(count, kPanel), filled = padded<c10::BFloat16>(count);
      for (std::int64_t first = 0; first < extent.width; first += kPanel) {
        auto* panel = to + packed_.room() + first * rows;
        pack_rows(values.rows + first, values.stride, count, kPanel, panel);
        std::fill_n(panel + filled * kPanel, (rows - filled) * kPanel, c10::BFloat16(0));
      }
    });
  }
  const avx512::Word* keys(std::int64_t place, std::int64_t tile) const {
    return avx512::words(packed_.at(place, tile));
  }
  const avx512::Word* values(std::int64_t place, std::int64_t tile) const {
    return avx512::words(packed_.at(place, tile) + packed_.room());
  }

 private:
  KeyRoom<c10::BFloat16> packed_;
};

// What a block of queries and the keys of one step have.
template <std::int64_t Rows>
struct QueryBlock {
  const avx512::Word *query, *keys, *values;
  std::int64_t width, value_steps;  // value_steps: of a panel of values
  float* output;                    // [rows, width]
  avx512::RunningSoftmax<Rows>* running;
  float scale;  // of scores as powers of two
};

// A task's queries, padded to blocks of Products::kRows, and their running softmax, over steps of
// Products::kStep keys, whole panels of a tile, which Products::add(QueryBlock, what its queries see) takes
// one after another. An object of Products lives as long as the task.
template <class Products>
class PanelForward {
  using Element = c10::BFloat16;

 public:
  static constexpr std::int64_t kTile = Products::kTile;  // queries

  PanelForward(const Extent& extent, const Panels& panels, const Visible& visible)
      : extent_(extent),
        panels_(panels),
        mask_(visible.mask),
        first_keys_(visible),
        query_(scratch<Element>(kTile * extent.width)),
        output_(scratch<float>(kTile * extent.width)) {
    whole_.rows.fill({0, kStep});
    whole_.finish();
  }

  void attend(const QueryTile<Element>& tile, std::int64_t place) {
    begin(tile);
    const std::int64_t first = std::max<std::int64_t>(first_keys_.of(tile.sequence, tile.first), 0);
    const std::int64_t end = seen_keys(mask_, tile.first + tile.rows - 1, 0, extent_.keys);
    for (std::int64_t keys = first / kStep * kStep; keys < end; keys += kStep) {
      for (std::int64_t row = 0; row < tile.rows; row += kRows) attend_keys(tile, row, place, keys);
    }
    for (std::int64_t row = 0; row < tile.rows; ++row) finish_row(tile, row);
  }

 private:
  static constexpr std::int64_t kRows = Products::kRows, kStep = Products::kStep;

  void begin(const QueryTile<Element>& tile) {
    const std::int64_t rows = avx512::up(tile.rows, kRows), width = extent_.width;
    for (std::int64_t row = 0; row < tile.rows; ++row)
      std::copy_n(tile.query + row * tile.query_stride, width, query_.get() + row * width);
    std::fill_n(query_.get() + tile.rows * width, (rows - tile.rows) * width, Element(0));
    std::fill_n(output_.get(), rows * width, 0.0f);
    for (std::int64_t row = 0; row < rows; row += kRows) running_[row / kRows].begin();
  }

  // The block of queries from `first` of the tile on, and the step whose first key of the chunk is `keys`.
  void attend_keys(const QueryTile<Element>& tile, std::int64_t first, std::int64_t place,
                   std::int64_t keys) {
    const std::int64_t rows = std::min(kRows, tile.rows - first), query = tile.first + first;
    const std::int64_t count = std::min(kStep, extent_.keys - keys), in_tile = keys % kKeys;
    if (seen_keys(mask_, query + rows - 1, keys, count) == 0) return;
    const QueryBlock<kRows> block{avx512::words(query_.get() + first * extent_.width),
                                  panels_.keys(place, keys / kKeys) + in_tile * extent_.width / 2,
                                  panels_.values(place, keys / kKeys) + in_tile / 2 * avx512::kPanel,
                                  extent_.width,
                                  avx512::up(extent_.keys_of(keys / kKeys), avx512::kPanel) / 2,
                                  output_.get() + first * extent_.width,
                                  &running_[first / kRows],
                                  extent_.scale_of_two()};
    const bool whole = count == kStep && first_keys_.of(tile.sequence, query + rows - 1) <= keys &&
                       seen_keys(mask_, query, keys, count) == count;
    if (whole) return products_.add(block, whole_);
    avx512::SeenByBlock<kRows> seen;
    for (std::int64_t row = 0; row < kRows; ++row) {
      const std::int64_t position = query + std::min(row, rows - 1);  // padding sees the same
      const std::int64_t from = first_keys_.of(tile.sequence, position) - keys;
      seen.rows[row] = {std::max<std::int64_t>(from, 0), seen_keys(mask_, position, keys, count)};
    }
    seen.finish();
    if (!seen.any.none()) products_.add(block, seen);
  }

  void finish_row(const QueryTile<Element>& tile, std::int64_t row) {
    const avx512::RunningSoftmax<kRows>& running = running_[row / kRows];
    const float* from = output_.get() + row * extent_.width;
    float* output = tile.output + row * tile.output_stride;
    const float sum = running.sum[row % kRows];
    const float factor = sum == 0 ? 0.0f : 1.0f / sum;  // 0: it sees no key
    for (std::int64_t i = 0; i < extent_.width; ++i) output[i] = factor * from[i];
    tile.log_sum_exp[row] = log_sum_exp(running.maximum[row % kRows], sum);
  }

  Products products_;
  const Extent& extent_;
  const Panels& panels_;
  Mask mask_;
  FirstKeys first_keys_;
  Scratch<Element> query_;
  Scratch<float> output_;
  avx512::SeenByBlock<kRows> whole_;  // of a step that all queries see whole
  std::array<avx512::RunningSoftmax<kRows>, kTile / kRows> running_;
};

template <class Products>
AttentionPart attend_panels(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const Visible& visible) {
  return attend_by_query_tiles<c10::BFloat16, Panels, PanelForward<Products>>(query, key, value, visible);
}

}  // namespace penstock::nn::kernels
