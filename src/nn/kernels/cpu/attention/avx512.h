// SPDX-License-Identifier: Apache-2.0
// Attention's inner loops in bf16 by AVX-512's own instructions, for processors with avx512_bf16: blocks of
// products whose sums stay in registers, and exponentials. Included only by the files that are chosen at run
// time (avx512_forward.cpp, avx512_backward.cpp).
//
// Everything is read in words: two neighbours of bf16. The left operand is plain rows; the right one is in
// panels of 32 columns, [inner / 2, 32] words, each a pair of rows of the product's inner dimension.
#pragma once

#include <c10/util/BFloat16.h>
#include <immintrin.h>

#include <cstdint>

namespace penstock::nn::kernels::avx512 {

#define PENSTOCK_AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma")))
#define PENSTOCK_AVX512_BF16_INLINE PENSTOCK_AVX512_BF16 __attribute__((always_inline)) inline

using Word = std::uint32_t __attribute__((may_alias));

inline constexpr std::int64_t kPanel = 32;  // columns, two registers of sums
inline constexpr std::int64_t kBlock = 8;   // rows: with them 16 sums hide the latency of a product

// Keys of a tile, from `from` to before `until`.
struct Range {
  std::int64_t from = 0, until = 0;
  bool none() const { return from >= until; }
};

inline const Word* words(const c10::BFloat16* elements) { return reinterpret_cast<const Word*>(elements); }
inline std::int64_t up(std::int64_t count, std::int64_t unit) { return (count + unit - 1) / unit * unit; }

PENSTOCK_AVX512_BF16_INLINE __m512bh pairs(const Word* from) {
  return reinterpret_cast<__m512bh>(_mm512_loadu_si512(from));
}
PENSTOCK_AVX512_BF16_INLINE __m512bh spread(Word pair) {
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(pair)));
}

// sums [Rows, 32] += a [Rows, 2·steps] · b [2·steps, 32]; `a_stride` in words.
template <int Rows>
PENSTOCK_AVX512_BF16_INLINE void multiply_block(const Word* a, std::int64_t a_stride, std::int64_t steps,
                                                const Word* b, __m512 (&sums)[Rows][2]) {
  for (std::int64_t step = 0; step < steps; ++step) {
    const __m512bh left = pairs(b + step * kPanel), right = pairs(b + step * kPanel + 16);
#pragma GCC unroll 16
    for (int row = 0; row < Rows; ++row) {
      const __m512bh x = spread(a[row * a_stride + step]);
      sums[row][0] = _mm512_dpbf16_ps(sums[row][0], x, left);
      sums[row][1] = _mm512_dpbf16_ps(sums[row][1], x, right);
    }
  }
}

template <int Rows>
PENSTOCK_AVX512_BF16_INLINE void clear(__m512 (&sums)[Rows][2]) {
#pragma GCC unroll 16
  for (int row = 0; row < Rows; ++row) sums[row][0] = sums[row][1] = _mm512_setzero_ps();
}

// 2^x within 4e-6, a thousandth of bf16's rounding; below -125 the result is that of -125; NaN stays NaN. The
// exponent is added as an integer, as in power_of_two() of exponential.h, whose polynomial has two degrees
// more.
struct ByIntegers {
  PENSTOCK_AVX512_BF16_INLINE static __m512 of_two(__m512 x) {
    const __m512 clamped = _mm512_max_ps(_mm512_set1_ps(-125.0f), x);  // the second operand where one is NaN
    const __m512 round = _mm512_set1_ps(12582912.0f);
    const __m512 shifted = _mm512_add_ps(clamped, round);
    const __m512 r = _mm512_sub_ps(clamped, _mm512_sub_ps(shifted, round));
    __m512 p = _mm512_set1_ps(9.666368515e-3f);  // interpolates at Chebyshev's nodes of [-1/2, 1/2]
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.592197584e-2f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.402234904e-1f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.931210452e-1f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    return _mm512_castsi512_ps(
        _mm512_add_epi32(_mm512_castps_si512(p), _mm512_slli_epi32(_mm512_castps_si512(shifted), 23)));
  }
};

// The same by two of AVX-512's own steps, the fraction and the scaling by a power: three operations fewer,
// where the processor does each in one.
struct ByScaling {
  PENSTOCK_AVX512_BF16_INLINE static __m512 of_two(__m512 x) {
    const __m512 clamped = _mm512_max_ps(_mm512_set1_ps(-125.0f), x);
    const __m512 r = _mm512_reduce_ps(clamped, 1);  // what it is above the integer below it
    __m512 p = _mm512_set1_ps(1.342668428e-02f);  // the least relative error on [0, 1] of one that is 1 at 0
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.224247421e-02f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.412802048e-01f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.930448449e-01f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(p, clamped);
  }
};

// Two registers of neighbouring columns, rounded.
PENSTOCK_AVX512_BF16_INLINE __m512i narrowed_pair(__m512 first, __m512 second) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
}

}  // namespace penstock::nn::kernels::avx512
