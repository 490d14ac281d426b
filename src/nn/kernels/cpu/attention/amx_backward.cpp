// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cpu/attention/amx_backward.h"

#include "nn/kernels/cpu/attention/amx.h"
#include "nn/kernels/cpu/attention/panel_backward.h"

namespace penstock::nn::kernels::amx {
namespace {

using avx512::ScoreBlock;
using avx512::SeenKeys;

// Sums of 32 keys and 32 queries in the L1 cache, on their way from tiles to vectors.
struct Sums {
  alignas(64) float scores[kRows * kPanel], grads[kRows * kPanel];
};

template <bool Whole>
PENSTOCK_AVX512_BF16 void write_results(const ScoreBlock& block, const Sums& sums, const SeenKeys& seen,
                                        std::int64_t key) {
  for (std::int64_t first = 0; first < kRows; first += avx512::kScoreRows) {
    avx512::ScoreSums loaded;
#pragma GCC unroll 16
    for (int row = 0; row < avx512::kScoreRows; ++row) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const std::int64_t at = (first + row) * kPanel + 16 * half;
        loaded.scores[row][half] = _mm512_load_ps(sums.scores + at);
        loaded.grads[row][half] = _mm512_load_ps(sums.grads + at);
      }
    }
    avx512::write_results<avx512::ByScaling, Whole>(block.results_from(first), loaded, seen, key + first);
  }
}

class Products {
 public:
  static constexpr std::int64_t kScoreRows = amx::kRows, kRows = amx::kRows, kTiles = 4;

  void score(const ScoreBlock& block, const SeenKeys& seen, std::int64_t key, bool all) {
    clear_sums();
    multiply_block(block.keys, block.words, block.words, block.queries);
    store_sums(sums_.scores, kPanel);
    clear_sums();
    multiply_block(block.values, block.words, block.words, block.grads);
    store_sums(sums_.grads, kPanel);
    (all ? write_results<true> : write_results<false>)(block, sums_, seen, key);
  }

  void add(std::span<const Segment> segments, std::int64_t left_stride, bool adds, float* to,
           std::int64_t stride) {
    adds ? load_sums(to, stride) : clear_sums();
    for (const Segment& segment : segments)
      multiply_block(segment.left, left_stride, segment.words, segment.panel);
    store_sums(to, stride);
  }

 private:
  Tiles tiles_;
  Sums sums_;
};

}  // namespace

AttentionGradients attend_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                   const at::Tensor& key, const at::Tensor& value,
                                   const AttentionPart& merged, const Visible& visible) {
  return attend_panels_backward<Products>(grad_output, query, key, value, merged, visible);
}

}  // namespace penstock::nn::kernels::amx
