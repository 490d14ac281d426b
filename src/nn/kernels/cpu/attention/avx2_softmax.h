// SPDX-License-Identifier: Apache-2.0
// Running softmax of a panel of queries in AVX2 (panels.h). Processes two registers of queries over all keys
// at a time: more do not fit next to the constants.
#pragma once

#include "nn/kernels/cpu/attention/avx2.h"

namespace penstock::nn::kernels::avx2 {

// power_of_two() of exponential.h. NaN stays NaN: max_ps returns its second operand if one is NaN.
PENSTOCK_AVX2_INLINE __m256 of_two(__m256 x) {
  constexpr float kTerms[] = {
      1.0f,           6.931472028e-1f, 2.402264791e-1f, 5.550332471e-2f, 9.618437357e-3f, 1.339887440e-3f,
      1.535336188e-4f};
  constexpr int kDegree = 6;
  const __m256 inside = _mm256_max_ps(_mm256_set1_ps(-125.0f), x), round = _mm256_set1_ps(12582912.0f);
  const __m256 shifted = _mm256_add_ps(inside, round);
  const __m256 r = _mm256_sub_ps(inside, _mm256_sub_ps(shifted, round));
  __m256 p = _mm256_set1_ps(kTerms[kDegree]);
#pragma GCC unroll 6
  for (int i = kDegree - 1; i >= 0; --i) p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kTerms[i]));
  return _mm256_castsi256_ps(
      _mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(shifted), 23)));
}

using Two = __m256[2];

PENSTOCK_AVX2_INLINE void load(const float* from, Two& to) {
  to[0] = _mm256_loadu_ps(from);
  to[1] = _mm256_loadu_ps(from + 8);
}
PENSTOCK_AVX2_INLINE void store(const Two& from, float* to) {
  _mm256_storeu_ps(to, from[0]);
  _mm256_storeu_ps(to + 8, from[1]);
}

// Mask over 8 queries: all bits set for those that see this key of the chunk.
PENSTOCK_AVX2_INLINE __m256 sees(const SeenKeys& seen, std::int64_t query, std::int64_t key) {
  const __m256i keys = _mm256_set1_epi32(static_cast<int>(key));
  const auto of = [&](const std::int32_t* limits) PENSTOCK_AVX2 {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(limits + query));
  };
  const __m256i unseen =
      _mm256_or_si256(_mm256_cmpgt_epi32(of(seen.first), keys), _mm256_cmpgt_epi32(keys, of(seen.last)));
  return _mm256_castsi256_ps(_mm256_xor_si256(unseen, _mm256_set1_epi32(-1)));
}

// Ignores NaN. Keeps two maxima per column, so that consecutive rows do not wait for each other.
PENSTOCK_AVX2_INLINE void greatest_of(const Scores& scores, std::int64_t query, Two& greatest) {
  Two other;
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) greatest[i] = other[i] = _mm256_set1_ps(-INFINITY);
  const float* at = scores.at + query;
  const auto raise = [&](std::int64_t row, Two& to) PENSTOCK_AVX2 {
    to[0] = _mm256_max_ps(_mm256_loadu_ps(at + row * kPanel), to[0]);
    to[1] = _mm256_max_ps(_mm256_loadu_ps(at + row * kPanel + 8), to[1]);
  };
  const auto raise_masked = [&](const Range& rows) PENSTOCK_AVX2 {
    for (std::int64_t row = rows.from; row < rows.until; ++row) {
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        const __m256 above = _mm256_max_ps(_mm256_loadu_ps(at + row * kPanel + 8 * i), greatest[i]);
        greatest[i] =
            _mm256_blendv_ps(greatest[i], above, sees(scores.seen, query + 8 * i, scores.first_key + row));
      }
    }
  };
  raise_masked(scores.before());
  std::int64_t row = scores.whole.from;
  for (; row + 1 < scores.whole.until; row += 2) {
    raise(row, greatest);
    raise(row + 1, other);
  }
  if (row < scores.whole.until) raise(row, greatest);
  raise_masked(scores.after());
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) greatest[i] = _mm256_max_ps(greatest[i], other[i]);
}

// Raises the maximum of queries whose greatest score exceeds it by more than the slack. Returns whether there
// are any; then earlier sums of all queries must be multiplied by `keep`.
PENSTOCK_AVX2_INLINE bool raise_maximum(RunningSoftmax& running, std::int64_t query, float scale,
                                        const Two& greatest, float* keep) {
  int raised = 0;
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const std::int64_t at = query + 8 * i;
    const __m256 before = _mm256_load_ps(running.maximum + at);
    const __m256 after = _mm256_mul_ps(_mm256_set1_ps(scale), greatest[i]);
    const __m256 beyond =
        _mm256_cmp_ps(after, _mm256_add_ps(before, _mm256_set1_ps(RunningSoftmax::kSlack)), _CMP_GT_OQ);
    const __m256 factor =
        _mm256_blendv_ps(_mm256_set1_ps(1.0f), of_two(_mm256_sub_ps(before, after)), beyond);
    _mm256_store_ps(keep + at, factor);
    _mm256_store_ps(running.maximum + at, _mm256_blendv_ps(before, after, beyond));
    _mm256_store_ps(running.sum + at, _mm256_mul_ps(factor, _mm256_load_ps(running.sum + at)));
    raised |= _mm256_movemask_ps(beyond);
  }
  return raised != 0;
}

// probabilities = 2^(scale·score − maximum), 0 where a query does not see the key. Adds them to the sums, row
// by row.
template <bool Masked>
PENSTOCK_AVX2_INLINE void exponentiate(const Scores& scores, const Range& rows, std::int64_t query,
                                       const Two& maximum, Two& sums, float* probabilities) {
  const __m256 scale = _mm256_set1_ps(scores.scale);
  for (std::int64_t row = rows.from; row < rows.until; ++row) {
    Two p;
    load(scores.at + row * kPanel + query, p);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      p[i] = of_two(_mm256_fmsub_ps(scale, p[i], maximum[i]));
      if constexpr (Masked)
        p[i] = _mm256_and_ps(p[i], sees(scores.seen, query + 8 * i, scores.first_key + row));
      sums[i] = _mm256_add_ps(sums[i], p[i]);
    }
    store(p, probabilities + row * kPanel + query);
  }
}

// Turns scores into probabilities, both panels [keys, 32], possibly in place. Returns whether earlier sums
// must be multiplied by `keep` [32].
inline PENSTOCK_AVX2 bool softmax(const Scores& scores, RunningSoftmax& running, float* probabilities,
                                  float* keep) {
  bool raised = false;
  for (std::int64_t query = 0; query < kPanel; query += 16) {
    Two greatest, maximum, sums;
    greatest_of(scores, query, greatest);
    raised |= raise_maximum(running, query, scores.scale, greatest, keep);
    load(running.maximum + query, maximum);
    load(running.sum + query, sums);
    exponentiate<true>(scores, scores.before(), query, maximum, sums, probabilities);
    exponentiate<false>(scores, scores.whole, query, maximum, sums, probabilities);
    exponentiate<true>(scores, scores.after(), query, maximum, sums, probabilities);
    store(sums, running.sum + query);
  }
  return raised;
}

// rows [count, 32] · factors [32]
inline PENSTOCK_AVX2 void multiply_rows(float* rows, std::int64_t count, const float* factors) {
  __m256 by[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) by[i] = _mm256_loadu_ps(factors + 8 * i);
  for (std::int64_t row = 0; row < count; ++row, rows += kPanel) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      _mm256_store_ps(rows + 8 * i, _mm256_mul_ps(by[i], _mm256_load_ps(rows + 8 * i)));
  }
}

}  // namespace penstock::nn::kernels::avx2
