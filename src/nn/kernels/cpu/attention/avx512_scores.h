// SPDX-License-Identifier: Apache-2.0
// Computes probabilities and gradients of scores (ScoreRows, panels.h).
#pragma once

#include "nn/kernels/cpu/attention/avx512_softmax.h"

namespace penstock::nn::kernels::avx512 {

// Stores the rows of one word: one row as it is in f32, two rows in bf16, plain and interleaved.
PENSTOCK_AVX512_INLINE void store_scores(const ScoreRows& to, std::int64_t row,
                                         const __m512 (&probability)[1][2], const __m512 (&grad)[1][2]) {
  store_words(probability, to.probabilities + row * kPanel);
  store_words(grad, to.grad_scores + row * kPanel);
}
PENSTOCK_AVX512_INLINE void store_scores(const ScoreRows& to, std::int64_t row,
                                         const __m512 (&probability)[2][2], const __m512 (&grad)[2][2]) {
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const std::int64_t at = (row + i) * kPanel / 2;
    _mm512_storeu_si512(to.probabilities + at, narrowed_pair(probability[i][0], probability[i][1]));
    _mm512_storeu_si512(to.grad_scores + at, narrowed_pair(grad[i][0], grad[i][1]));
  }
  store_words(grad, to.paired + row / 2 * kPanel);
}

// P = 2^(scale·S − lse) and dS = P·(dP − δ); 0 where a query does not see the key.
template <class Element, class Power, bool Masked>
PENSTOCK_AVX512_INLINE void write_rows(const ScoreRows& block, const Range& rows) {
  constexpr int kRows = kPair<Element>;
  const __m512 scale = _mm512_set1_ps(block.scores.scale);
  const __m512 log_sum_exp[2] = {_mm512_loadu_ps(block.log_sum_exp), _mm512_loadu_ps(block.log_sum_exp + 16)};
  const __m512 delta[2] = {_mm512_loadu_ps(block.delta), _mm512_loadu_ps(block.delta + 16)};
  for (std::int64_t row = rows.from; row < rows.until; row += kRows) {
    __m512 probability[kRows][2], grad[kRows][2];
#pragma GCC unroll 2
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const std::int64_t at = (row + i) * kPanel + 16 * half;
        const __m512 score = _mm512_loadu_ps(block.scores.at + at);
        const __m512 above = _mm512_sub_ps(_mm512_loadu_ps(block.grad_probabilities + at), delta[half]);
        const __m512 p = Power::of_two(_mm512_fmsub_ps(scale, score, log_sum_exp[half]));
        if constexpr (Masked) {
          const __mmask16 seen = sees(block.scores.seen, half, block.scores.first_key + row + i);
          probability[i][half] = _mm512_maskz_mov_ps(seen, p);
          grad[i][half] = _mm512_maskz_mul_ps(seen, p, above);
        } else {
          probability[i][half] = p;
          grad[i][half] = _mm512_mul_ps(p, above);
        }
      }
    }
    store_scores(block, row, probability, grad);
  }
}

template <class Element, class Power>
PENSTOCK_AVX512 void write_scores(const ScoreRows& block) {
  write_rows<Element, Power, true>(block, block.scores.before());
  write_rows<Element, Power, false>(block, block.scores.whole);
  write_rows<Element, Power, true>(block, block.scores.after());
}

}  // namespace penstock::nn::kernels::avx512
