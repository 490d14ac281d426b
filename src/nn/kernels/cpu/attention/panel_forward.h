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

// What a block of `rows` queries and a tile of keys have.
struct QueryBlock {
  const avx512::Word *query, *keys, *values;
  std::int64_t width, value_steps;  // steps of a panel of values
  float *scores, *output;           // [rows, kKeys]; [rows, width]
  c10::BFloat16* probabilities;     // [rows, kKeys]
};

// A task's queries, padded to blocks, and their running softmax. Products::attend(QueryBlock, what each eight
// queries of it see, scale, their running softmaxes) takes Products::kRows queries, a multiple of eight; an
// object of Products lives as long as the task.
template <class Products>
class PanelForward {
  using Element = c10::BFloat16;

 public:
  PanelForward(const Extent& extent, const Panels& panels, const Visible& visible)
      : extent_(extent),
        panels_(panels),
        mask_(visible.mask),
        first_keys_(visible),
        query_(scratch<Element>(kQueries * extent.width)),
        probabilities_(scratch<Element>(kRows * kKeys)),
        scores_(scratch<float>(kRows * kKeys)),
        output_(scratch<float>(kQueries * extent.width)) {}

  void attend(const QueryTile<Element>& tile, std::int64_t place) {
    begin(tile);
    const std::int64_t least = std::max<std::int64_t>(first_keys_.of(tile.sequence, tile.first), 0);
    for (std::int64_t keys = least / kKeys; keys < extent_.key_tiles(); ++keys) {
      if (seen_keys(mask_, tile.first + tile.rows - 1, keys * kKeys, extent_.keys_of(keys)) <= 0) continue;
      for (std::int64_t row = 0; row < tile.rows; row += kRows) attend_keys(tile, row, place, keys);
    }
    for (std::int64_t row = 0; row < tile.rows; ++row) {
      const avx512::RunningSoftmax& running = running_[row / avx512::kBlock];
      finish_row(tile, row, running.maximum[row % avx512::kBlock], running.sum[row % avx512::kBlock]);
    }
  }

 private:
  static constexpr std::int64_t kRows = Products::kRows, kGroups = kRows / avx512::kBlock;

  void begin(const QueryTile<Element>& tile) {
    const std::int64_t rows = avx512::up(tile.rows, kRows), width = extent_.width;
    for (std::int64_t row = 0; row < tile.rows; ++row)
      std::copy_n(tile.query + row * tile.query_stride, width, query_.get() + row * width);
    std::fill_n(query_.get() + tile.rows * width, (rows - tile.rows) * width, Element(0));
    std::fill_n(output_.get(), rows * width, 0.0f);
    for (avx512::RunningSoftmax& running : running_) {
      running.maximum.fill(-INFINITY);
      running.sum.fill(0.0f);
    }
  }

  // The queries of one block, from `first` of the tile on.
  void attend_keys(const QueryTile<Element>& tile, std::int64_t first, std::int64_t place,
                   std::int64_t keys) {
    std::array<avx512::SeenByBlock, kGroups> seen;
    const std::int64_t count = extent_.keys_of(keys);
    bool any = false;
    for (std::int64_t row = 0; row < kRows; ++row) {
      const std::int64_t query = tile.first + std::min(first + row, tile.rows - 1);  // padding sees the same
      const std::int64_t from = first_keys_.of(tile.sequence, query) - keys * kKeys;
      seen[row / avx512::kBlock].rows[row % avx512::kBlock] = {std::max<std::int64_t>(from, 0),
                                                               seen_keys(mask_, query, keys * kKeys, count)};
    }
    for (avx512::SeenByBlock& group : seen) {
      group.finish();
      any = any || !group.any.none();
    }
    if (!any) return;
    const QueryBlock block{avx512::words(query_.get() + first * extent_.width),
                           panels_.keys(place, keys),
                           panels_.values(place, keys),
                           extent_.width,
                           avx512::up(count, avx512::kPanel) / 2,
                           scores_.get(),
                           output_.get() + first * extent_.width,
                           probabilities_.get()};
    Products::attend(block, seen, extent_.scale_of_two(), running_.data() + first / avx512::kBlock);
  }

  void finish_row(const QueryTile<Element>& tile, std::int64_t row, float maximum, float sum) {
    const float* from = output_.get() + row * extent_.width;
    float* output = tile.output + row * tile.output_stride;
    const float factor = sum == 0 ? 0.0f : 1.0f / sum;  // 0: it sees no key
    for (std::int64_t i = 0; i < extent_.width; ++i) output[i] = factor * from[i];
    tile.log_sum_exp[row] = log_sum_exp(maximum, sum);
  }

  Products products_;
  const Extent& extent_;
  const Panels& panels_;
  Mask mask_;
  FirstKeys first_keys_;
  std::unique_ptr<Element[]> query_, probabilities_;
  std::unique_ptr<float[]> scores_, output_;
  std::array<avx512::RunningSoftmax, kQueries / avx512::kBlock> running_{};
};

template <class Products>
AttentionPart attend_panels(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const Visible& visible) {
  return attend_by_query_tiles<c10::BFloat16, Panels, PanelForward<Products>>(query, key, value, visible);
}

}  // namespace penstock::nn::kernels
