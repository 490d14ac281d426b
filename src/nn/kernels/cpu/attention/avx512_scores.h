// SPDX-License-Identifier: Apache-2.0
// Of a few keys and 32 queries: probabilities and gradients of scores, transposed, from both products they
// need.
#pragma once

#include "nn/kernels/cpu/attention/avx512.h"

namespace penstock::nn::kernels::avx512 {

inline constexpr int kScoreRows = 4;  // keys: with both products 16 sums in registers

// Of 32 queries, which keys of the chunk each sees: those from `first` to `last`, which is -1 for padding.
struct SeenKeys {
  alignas(64) std::int32_t first[kPanel], last[kPanel];
};

struct ScoreBlock {
  const Word *keys, *values;    // rows of keys [rows, d]
  const Word *queries, *grads;  // panels of queries [d, 32]
  std::int64_t words;           // of a row of keys
  const float *log_sum_exp, *delta;
  float scale_of_two;
  std::int64_t columns;                        // of a row of the results
  c10::BFloat16 *probabilities, *grad_scores;  // [rows, columns]; grad_scores not scaled by 1/√d
  Word* paired;                                // the same as grad_scores, a panel [rows / 2, 32]

  // The block from its row-th key on, an even number, as far as the results go.
  ScoreBlock results_from(std::int64_t row) const {
    ScoreBlock rest = *this;
    rest.probabilities += row * columns;
    rest.grad_scores += row * columns;
    rest.paired += row / 2 * kPanel;
    return rest;
  }
};

// probabilities = 2^(scale·S − lse) and dS = P·(dP − δ) of 16 columns.
template <class Power>
PENSTOCK_AVX512_BF16_INLINE void gradients(__m512 scale, __m512 log_sum_exp, __m512 delta, __mmask16 seen,
                                           __m512& scores, __m512& grads) {
  scores = _mm512_maskz_mov_ps(seen, Power::of_two(_mm512_fmsub_ps(scale, scores, log_sum_exp)));
  grads = _mm512_maskz_mul_ps(seen, scores, _mm512_sub_ps(grads, delta));
}

// The products of four keys, to be made probabilities and gradients by results().
struct ScoreSums {
  __m512 scores[kScoreRows][2], grads[kScoreRows][2];
};

PENSTOCK_AVX512_BF16_INLINE void multiply_scores(const ScoreBlock& block, ScoreSums& sums) {
  clear(sums.scores);
  clear(sums.grads);
  for (std::int64_t step = 0; step < block.words; ++step) {
    const Word *at_query = block.queries + step * kPanel, *at_grad = block.grads + step * kPanel;
    const __m512bh query[2] = {pairs(at_query), pairs(at_query + 16)};
    const __m512bh grad[2] = {pairs(at_grad), pairs(at_grad + 16)};
#pragma GCC unroll 16
    for (int row = 0; row < kScoreRows; ++row) {
      const __m512bh k = spread(block.keys[row * block.words + step]);
      sums.scores[row][0] = _mm512_dpbf16_ps(sums.scores[row][0], k, query[0]);
      sums.scores[row][1] = _mm512_dpbf16_ps(sums.scores[row][1], k, query[1]);
      const __m512bh v = spread(block.values[row * block.words + step]);
      sums.grads[row][0] = _mm512_dpbf16_ps(sums.grads[row][0], v, grad[0]);
      sums.grads[row][1] = _mm512_dpbf16_ps(sums.grads[row][1], v, grad[1]);
    }
  }
}

// The first of the four keys is `key` of the chunk; `seen` is read only where not everything is seen.
template <class Power, bool Whole>
PENSTOCK_AVX512_BF16_INLINE void write_results(const ScoreBlock& block, ScoreSums& sums, const SeenKeys& seen,
                                               std::int64_t key) {
  auto& [scores, grads] = sums;
  const __m512 scale = _mm512_set1_ps(block.scale_of_two);
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const __m512 log_sum_exp = _mm512_loadu_ps(block.log_sum_exp + 16 * half),
                 delta = _mm512_loadu_ps(block.delta + 16 * half);
#pragma GCC unroll 16
    for (int row = 0; row < kScoreRows; ++row) {
      __mmask16 mask = 0xFFFF;
      if constexpr (!Whole) {
        const __m512i keys = _mm512_set1_epi32(static_cast<int>(key) + row);
        mask = _mm512_cmple_epi32_mask(_mm512_load_si512(seen.first + 16 * half), keys) &
               _mm512_cmpge_epi32_mask(_mm512_load_si512(seen.last + 16 * half), keys);
      }
      gradients<Power>(scale, log_sum_exp, delta, mask, scores[row][half], grads[row][half]);
    }
  }
  // Words of a pair of keys alternate between their rows.
  alignas(64) static constexpr std::uint16_t kLow[32] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,
                                                         37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
                                                         11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const __m512i low = _mm512_load_si512(kLow), high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
#pragma GCC unroll 16
  for (int row = 0; row < kScoreRows; row += 2) {
    __m512i of_rows[2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      of_rows[i] = narrowed_pair(grads[row + i][0], grads[row + i][1]);
      _mm512_storeu_si512(block.grad_scores + (row + i) * block.columns, of_rows[i]);
      _mm512_storeu_si512(block.probabilities + (row + i) * block.columns,
                          narrowed_pair(scores[row + i][0], scores[row + i][1]));
    }
    Word* paired = block.paired + row / 2 * kPanel;
    _mm512_storeu_si512(paired, _mm512_permutex2var_epi16(of_rows[0], low, of_rows[1]));
    _mm512_storeu_si512(paired + 16, _mm512_permutex2var_epi16(of_rows[0], high, of_rows[1]));
  }
}

}  // namespace penstock::nn::kernels::avx512
