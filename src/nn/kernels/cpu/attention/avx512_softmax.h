// SPDX-License-Identifier: Apache-2.0
// Running softmax of a panel of queries in AVX-512, in base 2. Scores are transposed, [keys, 32], so that
// maxima and sums are vectors.
#pragma once

#include "nn/kernels/cpu/attention/avx512_exponential.h"

namespace penstock::nn::kernels::avx512 {

// Mask of the 16 queries that see this key of the chunk.
PENSTOCK_AVX512_INLINE __mmask16 sees(const SeenKeys& seen, int half, std::int64_t key) {
  const __m512i keys = _mm512_set1_epi32(static_cast<int>(key));
  return _mm512_mask_cmple_epi32_mask(
      _mm512_cmple_epi32_mask(_mm512_load_si512(seen.first + 16 * half), keys), keys,
      _mm512_load_si512(seen.last + 16 * half));
}

// Four maxima per query, so that consecutive rows do not wait for each other. NaN is ignored.
using Maxima = __m512[4][2];

PENSTOCK_AVX512_INLINE void raise(const float* scores, __m512 (&greatest)[2]) {
  greatest[0] = _mm512_max_ps(_mm512_loadu_ps(scores), greatest[0]);
  greatest[1] = _mm512_max_ps(_mm512_loadu_ps(scores + 16), greatest[1]);
}

PENSTOCK_AVX512_INLINE void raise_whole(const Scores& scores, Maxima& greatest) {
  const float* at = scores.at + scores.whole.from * kPanel;
  const std::int64_t count = scores.whole.count();
  for (std::int64_t i = 0; i < count / 4; ++i, at += 4 * kPanel) {
#pragma GCC unroll 4
    for (int row = 0; row < 4; ++row) raise(at + row * kPanel, greatest[row]);
  }
  for (std::int64_t i = 0; i < count % 4; ++i) raise(at + i * kPanel, greatest[0]);
}

PENSTOCK_AVX512_INLINE void raise_masked(const Scores& scores, const Range& rows, __m512 (&greatest)[2]) {
  for (std::int64_t row = rows.from; row < rows.until; ++row) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      greatest[half] =
          _mm512_mask_max_ps(greatest[half], sees(scores.seen, half, scores.first_key + row),
                             _mm512_loadu_ps(scores.at + row * kPanel + 16 * half), greatest[half]);
    }
  }
}

PENSTOCK_AVX512_INLINE void greatest_of(const Scores& scores, __m512 (&greatest)[2]) {
  Maxima maxima;
#pragma GCC unroll 4
  for (auto& one : maxima) one[0] = one[1] = _mm512_set1_ps(-INFINITY);
  raise_masked(scores, scores.before(), maxima[0]);
  raise_whole(scores, maxima);
  raise_masked(scores, scores.after(), maxima[0]);
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    greatest[half] = _mm512_max_ps(_mm512_max_ps(maxima[0][half], maxima[1][half]),
                                   _mm512_max_ps(maxima[2][half], maxima[3][half]));
  }
}

// Raises the maximum of queries whose greatest score exceeds it by more than the slack. Returns whether there
// are any; then earlier sums of all queries must be multiplied by `keep` [32].
template <class Power>
PENSTOCK_AVX512_INLINE bool raise_maximum(RunningSoftmax& running, float scale, const __m512 (&greatest)[2],
                                          float* keep) {
  unsigned raised = 0;
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const __m512 before = _mm512_load_ps(running.maximum + 16 * half);
    const __m512 after = _mm512_mul_ps(_mm512_set1_ps(scale), greatest[half]);
    const __mmask16 beyond =
        _mm512_cmp_ps_mask(after, _mm512_add_ps(before, _mm512_set1_ps(RunningSoftmax::kSlack)), _CMP_GT_OQ);
    const __m512 factor =
        _mm512_mask_mov_ps(_mm512_set1_ps(1.0f), beyond, Power::of_two(_mm512_sub_ps(before, after)));
    _mm512_store_ps(keep + 16 * half, factor);
    _mm512_store_ps(running.maximum + 16 * half, _mm512_mask_mov_ps(before, beyond, after));
    _mm512_store_ps(running.sum + 16 * half, _mm512_mul_ps(factor, _mm512_load_ps(running.sum + 16 * half)));
    raised |= beyond;
  }
  return raised != 0;
}

// Stores the rows of one word as a right operand of a product.
PENSTOCK_AVX512_INLINE void store_words(const __m512 (&row)[1][2], Word* to) {
  _mm512_storeu_ps(to, row[0][0]);
  _mm512_storeu_ps(to + 16, row[0][1]);
}
PENSTOCK_AVX512_INLINE void store_words(const __m512 (&rows)[2][2], Word* to) {
  alignas(64) static constexpr std::uint16_t kPairs[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                           21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                           11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i order = _mm512_load_si512(kPairs);
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    _mm512_storeu_si512(to + 16 * half,
                        _mm512_permutexvar_epi16(order, narrowed_pair(rows[0][half], rows[1][half])));
  }
}

// probabilities = 2^(scale·score − maximum), 0 where a query does not see the key. Adds them to the sums, row
// by row.
template <class Element, class Power, bool Masked>
PENSTOCK_AVX512_INLINE void exponentiate(const Scores& scores, const Range& rows, const __m512 (&maximum)[2],
                                         __m512 (&sums)[2], Word* probabilities) {
  constexpr int kRows = kPair<Element>;
  const __m512 scale = _mm512_set1_ps(scores.scale);
  for (std::int64_t row = rows.from; row < rows.until; row += kRows) {
    __m512 of_rows[kRows][2];
#pragma GCC unroll 2
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const __m512 score = _mm512_loadu_ps(scores.at + (row + i) * kPanel + 16 * half);
        __m512& p = of_rows[i][half];
        p = Power::of_two(_mm512_fmsub_ps(scale, score, maximum[half]));
        if constexpr (Masked) p = _mm512_maskz_mov_ps(sees(scores.seen, half, scores.first_key + row + i), p);
        sums[half] = _mm512_add_ps(sums[half], p);
      }
    }
    store_words(of_rows, probabilities + row / kRows * kPanel);
  }
}

// Turns scores [keys, 32] into probabilities, a panel of words; in f32 possibly in place. Returns whether
// earlier sums must be multiplied by `keep` [32].
template <class Element, class Power>
PENSTOCK_AVX512 bool softmax(const Scores& scores, RunningSoftmax& running, Word* probabilities,
                             float* keep) {
  __m512 greatest[2];
  greatest_of(scores, greatest);
  const bool raised = raise_maximum<Power>(running, scores.scale, greatest, keep);
  const __m512 maximum[2] = {_mm512_load_ps(running.maximum), _mm512_load_ps(running.maximum + 16)};
  __m512 sums[2] = {_mm512_load_ps(running.sum), _mm512_load_ps(running.sum + 16)};
  exponentiate<Element, Power, true>(scores, scores.before(), maximum, sums, probabilities);
  exponentiate<Element, Power, false>(scores, scores.whole, maximum, sums, probabilities);
  exponentiate<Element, Power, true>(scores, scores.after(), maximum, sums, probabilities);
  _mm512_store_ps(running.sum, sums[0]);
  _mm512_store_ps(running.sum + 16, sums[1]);
  return raised;
}

// rows [count, 32] · factors [32]
inline PENSTOCK_AVX512 void multiply_rows(float* rows, std::int64_t count, const float* factors) {
  const __m512 first = _mm512_load_ps(factors), second = _mm512_load_ps(factors + 16);
  for (std::int64_t row = 0; row < count; ++row, rows += kPanel) {
    _mm512_store_ps(rows, _mm512_mul_ps(first, _mm512_load_ps(rows)));
    _mm512_store_ps(rows + 16, _mm512_mul_ps(second, _mm512_load_ps(rows + 16)));
  }
}

}  // namespace penstock::nn::kernels::avx512
