// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cpu/attention/avx512_backward.h"

#include "nn/kernels/cpu/attention/panel_backward.h"

namespace penstock::nn::kernels::avx512 {
namespace {

template <bool Whole>
PENSTOCK_AVX512_BF16 void score_block(const ScoreBlock& block, const SeenKeys& seen, std::int64_t key) {
  ScoreSums sums;
  multiply_scores(block, sums);
  write_results<ByIntegers, Whole>(block, sums, seen, key);
}

PENSTOCK_AVX512_BF16 void add_block(std::span<const Segment> segments, std::int64_t left_stride, bool adds,
                                    float* to, std::int64_t stride) {
  __m512 sums[kBlock][2];
  clear(sums);
  if (adds) {
#pragma GCC unroll 16
    for (int row = 0; row < kBlock; ++row) {
      sums[row][0] = _mm512_loadu_ps(to + row * stride);
      sums[row][1] = _mm512_loadu_ps(to + row * stride + 16);
    }
  }
  for (const Segment& segment : segments)
    multiply_block(segment.left, left_stride, segment.words, segment.panel, sums);
#pragma GCC unroll 16
  for (int row = 0; row < kBlock; ++row) {
    _mm512_storeu_ps(to + row * stride, sums[row][0]);
    _mm512_storeu_ps(to + row * stride + 16, sums[row][1]);
  }
}

struct Products {
  static constexpr std::int64_t kScoreRows = avx512::kScoreRows, kRows = kBlock, kTiles = 1;

  void score(const ScoreBlock& block, const SeenKeys& seen, std::int64_t key, bool all) {
    (all ? score_block<true> : score_block<false>)(block, seen, key);
  }
  void add(std::span<const Segment> segments, std::int64_t left_stride, bool adds, float* to,
           std::int64_t stride) {
    add_block(segments, left_stride, adds, to, stride);
  }
};

}  // namespace

AttentionGradients attend_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                   const at::Tensor& key, const at::Tensor& value,
                                   const AttentionPart& merged, const Visible& visible) {
  return attend_panels_backward<Products>(grad_output, query, key, value, merged, visible);
}

}  // namespace penstock::nn::kernels::avx512
