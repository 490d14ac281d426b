// SPDX-License-Identifier: Apache-2.0
// The forward of tiled attention with our own products ({avx2,avx512,amx}_attention.cpp): panels of 32
// queries, whose scores stay in a near cache, against one step of keys after another. Scores and outputs are
// transposed, [keys, 32] and [d, 32]: keys and values are left operands, queries and probabilities right.
#pragma once

#include "nn/kernels/cpu/attention/forward_loop.h"
#include "nn/kernels/cpu/attention/panels.h"

namespace penstock::nn::kernels {

// Keys [rows, d] and transposed values [d, rows] of one chunk as left operands, tile by tile. Rows are padded
// to whole panels.
template <class Products>
class LeftKeys {
  using Element = typename Products::Element;

 public:
  LeftKeys(const Extent& extent, const at::Tensor& key, const at::Tensor& value)
      : extent_(extent), packed_(extent, key) {
    packed_.fill(key, value, [&](const auto& keys, const auto& values, std::int64_t count, Element* to) {
      for (std::int64_t row = 0; row < count; ++row)
        std::copy_n(keys.rows + row * keys.stride, extent.width, to + row * extent.width);
      std::fill_n(to + count * extent.width, (room_of(count) - count) * extent.width, Element(0));
      Products::transpose(values.rows, values.stride, count, extent.width, room_of(count),
                          to + packed_.room());
    });
  }

  // Operands from key `key` of the chunk on. place: sequence · key-value heads + head.
  Left keys(std::int64_t place, std::int64_t key) const {
    const Element* tile = packed_.at(place, key / kKeys);
    return {words(tile + key % kKeys * extent_.width), extent_.width / kPair<Element>};
  }
  Left values(std::int64_t place, std::int64_t key) const {
    const Element* tile = packed_.at(place, key / kKeys) + packed_.room();
    return {words(tile + key % kKeys), room_of(extent_.keys_of(key / kKeys)) / kPair<Element>};
  }

 private:
  const Extent& extent_;
  KeyRoom<Element> packed_;
};

// A task's queries in panels, and their running softmax, over steps of Products::kStep keys of a tile.
// Products::add(segments, rows, adds, sums, stride) multiplies whole units of Products::kUnit rows by one
// panel and adds to the sums or sets them. Its other functions are those of avx512_vectors.h. An object of
// Products lives as long as the task.
template <class Products>
class PanelForward {
  using Element = typename Products::Element;

 public:
  static constexpr std::int64_t kTile = Products::kTile;  // queries that share each step of keys in cache

  PanelForward(const Extent& extent, const LeftKeys<Products>& keys, const Visible& visible)
      : extent_(extent),
        keys_(keys),
        mask_(visible.mask),
        first_keys_(visible),
        query_(scratch<Element>(kTile * extent.width)),
        output_(scratch<float>(kTile * extent.width)) {}

  void attend(const QueryTile<Element>& tile, std::int64_t place) {
    begin(tile);
    const std::int64_t first = std::max<std::int64_t>(first_keys_.of(tile.sequence, tile.first), 0);
    const std::int64_t end = seen_keys(mask_, tile.first + tile.rows - 1, 0, extent_.keys);
    for (std::int64_t key = first / kStep * kStep; key < end; key += kStep) {
      for (std::int64_t row = 0; row < tile.rows; row += kPanel) attend_keys(tile, row, place, key);
    }
    for (std::int64_t row = 0; row < tile.rows; row += kPanel) finish(tile, row);
  }

 private:
  static constexpr std::int64_t kStep = Products::kStep, kPair = kernels::kPair<Element>;
  static_assert(kKeys % kStep == 0 && kTile % kPanel == 0);

  // Data of the panel from `row` of the tile on.
  Element* query(std::int64_t row) const { return query_.get() + row * extent_.width; }
  float* output(std::int64_t row) const { return output_.get() + row * extent_.width; }  // [d, 32]
  RunningSoftmax& running(std::int64_t row) { return running_[static_cast<std::size_t>(row / kPanel)]; }

  void begin(const QueryTile<Element>& tile) {
    for (std::int64_t row = 0; row < tile.rows; row += kPanel) {
      Products::pack_panel(tile.query + row * tile.query_stride, tile.query_stride,
                           std::min(kPanel, tile.rows - row), extent_.width, query(row));
      std::fill_n(output(row), kPanel * extent_.width, 0.0f);
      running(row).begin();
    }
  }

  void attend_keys(const QueryTile<Element>& tile, std::int64_t row, std::int64_t place, std::int64_t key) {
    const PanelKeys sees(mask_, first_keys_, {tile.sequence, tile.first + row, tile.first + tile.rows}, key,
                         std::min(kStep, extent_.keys - key), Products::kUnit);
    if (sees.some.none()) return;
    const std::int64_t from = sees.some.from, rows = sees.some.count(), width = extent_.width;
    float* scores = scores_.get();
    const Segment of_scores{keys_.keys(place, key + from), words(query(row)), width / kPair};
    products_.add(std::span(&of_scores, 1), rows, false, scores, kPanel);
    Word* probabilities = kPair == 1 ? scores : words(probabilities_.get());
    alignas(64) float keep[kPanel];
    const bool raised = Products::softmax(
        {scores, rows, sees.whole_of(from, rows, kPair), key + from, sees.seen, extent_.scale_of_two()},
        running(row), probabilities, keep);
    if (raised) Products::multiply_rows(output(row), width, keep);
    const Segment of_values{keys_.values(place, key + from), probabilities, rows / kPair};
    products_.add(std::span(&of_values, 1), width, true, output(row), kPanel);
  }

  // Scales and transposes the panel's output.
  void finish(const QueryTile<Element>& tile, std::int64_t first) {
    const RunningSoftmax& softmax = running(first);
    const std::int64_t count = std::min(kPanel, tile.rows - first);
    float factors[kPanel];
    for (std::int64_t row = 0; row < kPanel; ++row)
      factors[row] = softmax.sum[row] == 0 ? 0.0f : 1.0f / softmax.sum[row];  // 0: the query sees no key
    Products::write_columns(output(first), factors, extent_.width, count,
                            tile.output + first * tile.output_stride, tile.output_stride);
    for (std::int64_t row = 0; row < count; ++row)
      tile.log_sum_exp[first + row] = log_sum_exp(softmax.maximum[row], softmax.sum[row]);
  }

  Products products_;
  const Extent& extent_;
  const LeftKeys<Products>& keys_;
  Mask mask_;
  FirstKeys first_keys_;
  Scratch<Element> query_;
  Scratch<float> output_;
  Scratch<float> scores_ = scratch<float>(kStep * kPanel);
  Scratch<Element> probabilities_ =
      scratch<Element>(kPair == 1 ? 0 : kStep * kPanel);  // f32: in place of scores
  std::array<RunningSoftmax, kTile / kPanel> running_;
};

// Softmax over each [kStep, 32] panel of scores, one after another.
template <class Products>
void softmax_of_panels(const at::Tensor& scores, at::Tensor& probabilities) {
  using Element = typename Products::Element;
  constexpr std::int64_t kStep = Products::kStep, kScores = kStep * kPanel;
  const SeenKeys seen{};
  for (std::int64_t i = 0; i < scores.numel(); i += kScores) {
    RunningSoftmax running;
    running.begin();
    alignas(64) float keep[kPanel];
    Products::softmax(
        {scores.const_data_ptr<float>() + i, kStep, {0, kStep}, 0, seen, static_cast<float>(kLogOfE)},
        running, words(probabilities.data_ptr<Element>() + i), keep);
  }
}

template <class Products>
AttentionPart attend_panels(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const Visible& visible) {
  using Element = typename Products::Element;
  return attend_by_query_tiles<Element, LeftKeys<Products>, PanelForward<Products>>(query, key, value,
                                                                                    visible);
}

}  // namespace penstock::nn::kernels
