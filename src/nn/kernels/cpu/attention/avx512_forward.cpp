// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cpu/attention/avx512_forward.h"

#include <ATen/ops/empty.h>

#include "nn/kernels/cpu/attention/avx512_softmax.h"
#include "nn/kernels/cpu/attention/forward_loop.h"

namespace penstock::nn::kernels::avx512 {
namespace {

using Element = c10::BFloat16;

// Keys of one chunk in panels of keys, values in panels of their columns, tile by tile.
class Panels {
 public:
  Panels(const Extent& extent, const at::Tensor& key, const at::Tensor& value) : packed_(extent, key) {
    packed_.fill(key, value, [&](const auto& keys, const auto& values, std::int64_t count, Element* to) {
      for (std::int64_t first = 0; first < count; first += kPanel) {
        pack_transposed(keys.rows + first * keys.stride, keys.stride, std::min(kPanel, count - first),
                        extent.width, kPanel, to + first * extent.width);
      }
      for (std::int64_t first = 0; first < extent.width; first += kPanel) {
        pack_rows(values.rows + first, values.stride, count, kPanel,
                  to + packed_.room() + first * up(count, kPanel));
      }
    });
  }
  const Word* keys(std::int64_t place, std::int64_t tile) const { return words(packed_.at(place, tile)); }
  const Word* values(std::int64_t place, std::int64_t tile) const {
    return words(packed_.at(place, tile) + packed_.room());
  }

 private:
  KeyRoom<Element> packed_;
};

// What eight queries and a tile of keys have.
struct Block {
  const Word *query, *keys, *values;
  std::int64_t width, value_steps;  // steps of a panel of values
  float *scores, *output;           // [8, kKeys]; [8, width]
  Element* probabilities;           // [8, kKeys]
};

PENSTOCK_AVX512_BF16_INLINE void score_block(const Block& block, const SeenByBlock& seen,
                                             __m512 (&greatest)[kBlock]) {
  const std::int64_t query_words = block.width / 2;
#pragma GCC unroll 16
  for (int row = 0; row < kBlock; ++row) greatest[row] = _mm512_set1_ps(-INFINITY);
  for (std::int64_t column = seen.first_column(); column < seen.end_column(); column += kPanel) {
    __m512 sums[kBlock][2];
    clear(sums);
    multiply_block(block.query, query_words, query_words, block.keys + column * query_words, sums);
#pragma GCC unroll 16
    for (int row = 0; row < kBlock; ++row) {
      float* scores = block.scores + row * kKeys + column;
      _mm512_storeu_ps(scores, sums[row][0]);
      _mm512_storeu_ps(scores + 16, sums[row][1]);
      raise(greatest[row], sums[row], seen, row, column);
    }
  }
}

// output = keep·output + probabilities · values.
PENSTOCK_AVX512_BF16_INLINE void sum_values(const Block& block, const SeenByBlock& seen,
                                            const float (&keep)[kBlock]) {
  const std::int64_t begin = seen.first_column() / 2, steps = (seen.any.until + 1) / 2 - begin;
  for (std::int64_t column = 0; column < block.width; column += kPanel) {
    __m512 sums[kBlock][2];
#pragma GCC unroll 16
    for (int row = 0; row < kBlock; ++row) {
      const __m512 factor = _mm512_set1_ps(keep[row]);
      const float* output = block.output + row * block.width + column;
      sums[row][0] = _mm512_mul_ps(factor, _mm512_loadu_ps(output));
      sums[row][1] = _mm512_mul_ps(factor, _mm512_loadu_ps(output + 16));
    }
    const Word* values = block.values + column * block.value_steps + begin * kPanel;
    multiply_block(words(block.probabilities) + begin, kKeys / 2, steps, values, sums);
#pragma GCC unroll 16
    for (int row = 0; row < kBlock; ++row) {
      float* output = block.output + row * block.width + column;
      _mm512_storeu_ps(output, sums[row][0]);
      _mm512_storeu_ps(output + 16, sums[row][1]);
    }
  }
}

PENSTOCK_AVX512_BF16 void attend_block(const Block& block, const SeenByBlock& seen, float scale,
                                       RunningSoftmax& running) {
  __m512 greatest[kBlock];
  score_block(block, seen, greatest);
  float keep[kBlock];
  softmax_block(block.scores, seen, scale, greatest, running, block.probabilities, keep);
  sum_values(block, seen, keep);
}

PENSTOCK_AVX512_BF16 void softmax_alone(const float* scores, const SeenByBlock& seen,
                                        Element* probabilities) {
  __m512 greatest[kBlock];
  for (int row = 0; row < kBlock; ++row) {
    greatest[row] = _mm512_set1_ps(-INFINITY);
    for (std::int64_t column = 0; column < kKeys; column += kPanel) {
      const float* at = scores + row * kKeys + column;
      const __m512 panel[2] = {_mm512_loadu_ps(at), _mm512_loadu_ps(at + 16)};
      raise(greatest[row], panel, seen, row, column);
    }
  }
  RunningSoftmax running{};
  float keep[kBlock];
  softmax_block(scores, seen, static_cast<float>(kLogOfE), greatest, running, probabilities, keep);
}

// A task's queries, padded to blocks, and their running softmax.
class ForwardTile {
 public:
  ForwardTile(const Extent& extent, const Panels& panels, const Visible& visible)
      : extent_(extent),
        panels_(panels),
        mask_(visible.mask),
        first_keys_(visible),
        query_(scratch<Element>(kQueries * extent.width)),
        probabilities_(scratch<Element>(kBlock * kKeys)),
        scores_(scratch<float>(kBlock * kKeys)),
        output_(scratch<float>(kQueries * extent.width)) {}

  void attend(const QueryTile<Element>& tile, std::int64_t place) {
    begin(tile);
    const std::int64_t least = std::max<std::int64_t>(first_keys_.of(tile.sequence, tile.first), 0);
    for (std::int64_t keys = least / kKeys; keys < extent_.key_tiles(); ++keys) {
      if (seen_keys(mask_, tile.first + tile.rows - 1, keys * kKeys, extent_.keys_of(keys)) <= 0) continue;
      for (std::int64_t row = 0; row < tile.rows; row += kBlock) attend_keys(tile, row, place, keys);
    }
    for (std::int64_t row = 0; row < tile.rows; ++row) {
      const RunningSoftmax& running = running_[row / kBlock];
      finish_row(tile, row, running.maximum[row % kBlock], running.sum[row % kBlock]);
    }
  }

 private:
  void begin(const QueryTile<Element>& tile) {
    const std::int64_t rows = up(tile.rows, kBlock), width = extent_.width;
    for (std::int64_t row = 0; row < tile.rows; ++row)
      std::copy_n(tile.query + row * tile.query_stride, width, query_.get() + row * width);
    std::fill_n(query_.get() + tile.rows * width, (rows - tile.rows) * width, Element(0));
    std::fill_n(output_.get(), rows * width, 0.0f);
    for (RunningSoftmax& running : running_) {
      running.maximum.fill(-INFINITY);
      running.sum.fill(0.0f);
    }
  }

  // Eight queries from `first` of the tile on.
  void attend_keys(const QueryTile<Element>& tile, std::int64_t first, std::int64_t place,
                   std::int64_t keys) {
    SeenByBlock seen;
    const std::int64_t count = extent_.keys_of(keys);
    for (std::int64_t row = 0; row < kBlock; ++row) {
      const std::int64_t query = tile.first + std::min(first + row, tile.rows - 1);  // padding sees the same
      const std::int64_t from = first_keys_.of(tile.sequence, query) - keys * kKeys;
      seen.rows[row] = {std::max<std::int64_t>(from, 0), seen_keys(mask_, query, keys * kKeys, count)};
    }
    seen.finish();
    if (seen.any.none()) return;
    const Block block{words(query_.get() + first * extent_.width),
                      panels_.keys(place, keys),
                      panels_.values(place, keys),
                      extent_.width,
                      up(count, kPanel) / 2,
                      scores_.get(),
                      output_.get() + first * extent_.width,
                      probabilities_.get()};
    attend_block(block, seen, extent_.scale_of_two(), running_[first / kBlock]);
  }

  void finish_row(const QueryTile<Element>& tile, std::int64_t row, float maximum, float sum) {
    const float* from = output_.get() + row * extent_.width;
    float* output = tile.output + row * tile.output_stride;
    const float factor = sum == 0 ? 0.0f : 1.0f / sum;  // 0: it sees no key
    for (std::int64_t i = 0; i < extent_.width; ++i) output[i] = factor * from[i];
    tile.log_sum_exp[row] = log_sum_exp(maximum, sum);
  }

  const Extent& extent_;
  const Panels& panels_;
  Mask mask_;
  FirstKeys first_keys_;
  std::unique_ptr<Element[]> query_, probabilities_;
  std::unique_ptr<float[]> scores_, output_;
  std::array<RunningSoftmax, kQueries / kBlock> running_{};
};

}  // namespace

AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible) {
  return attend_by_query_tiles<Element, Panels, ForwardTile>(query, key, value, visible);
}

void softmax_tile(const at::Tensor& scores, at::Tensor& probabilities) {
  SeenByBlock seen;
  seen.rows.fill({0, kKeys});
  seen.finish();
  for (std::int64_t i = 0; i < scores.numel(); i += kBlock * kKeys)
    softmax_alone(scores.const_data_ptr<float>() + i, seen, probabilities.data_ptr<Element>() + i);
}

}  // namespace penstock::nn::kernels::avx512
