// SPDX-License-Identifier: Apache-2.0
// 2^x in AVX-512, as accurate as the element type needs: within 2 units in the last place for f32, within
// 4e-6 for bf16, a thousandth of its rounding. x is clamped to at least -125; NaN stays NaN.
#pragma once

#include "nn/kernels/cpu/attention/avx512.h"

namespace penstock::nn::kernels::avx512 {

// c[0] + c[1]·r + …
template <std::size_t Count>
PENSTOCK_AVX512_INLINE __m512 polynomial(const float (&c)[Count], __m512 r) {
  __m512 p = _mm512_set1_ps(c[Count - 1]);
#pragma GCC unroll 8
  for (int i = Count - 2; i >= 0; --i) p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(c[i]));
  return p;
}

// NaN stays NaN: max_ps returns its second operand if one is NaN.
PENSTOCK_AVX512_INLINE __m512 clamped(__m512 x) { return _mm512_max_ps(_mm512_set1_ps(-125.0f), x); }

// Minimise the relative error on [0, 1] with value 1 at 0: 2e-9 for f32, less than its rounding error.
template <class Element>
struct Terms {
  static constexpr float kOfOne[] = {1.0f,
                                     6.931470444e-01f,
                                     2.402293056e-01f,
                                     5.548528062e-02f,
                                     9.675451565e-03f,
                                     1.246784645e-03f,
                                     2.161291496e-04f};
};
template <>
struct Terms<c10::BFloat16> {
  static constexpr float kOfOne[] = {1.0f, 6.930448449e-01f, 2.412802048e-01f, 5.224247421e-02f,
                                     1.342668428e-02f};
};

// With two AVX-512 instructions: one for the fraction of x, one to scale by a power of two.
template <class Element>
struct ByScaling {
  PENSTOCK_AVX512_INLINE static __m512 of_two(__m512 x) {
    const __m512 inside = clamped(x);
    const __m512 r = _mm512_reduce_ps(inside, 1);  // x - floor(x)
    return _mm512_scalef_ps(polynomial(Terms<Element>::kOfOne, r), inside);
  }
};

// For bf16 on processors where these instructions take several steps: adds the exponent as an integer, as in
// power_of_two() of exponential.h.
struct ByIntegers {
  PENSTOCK_AVX512_INLINE static __m512 of_two(__m512 x) {
    // interpolates at the Chebyshev nodes of [-1/2, 1/2]
    constexpr float kTerms[] = {1.0f, 6.931210452e-1f, 2.402234904e-1f, 5.592197584e-2f, 9.666368515e-3f};
    const __m512 inside = clamped(x), round = _mm512_set1_ps(12582912.0f);
    const __m512 shifted = _mm512_add_ps(inside, round);
    const __m512 p = polynomial(kTerms, _mm512_sub_ps(inside, _mm512_sub_ps(shifted, round)));
    return _mm512_castsi512_ps(
        _mm512_add_epi32(_mm512_castps_si512(p), _mm512_slli_epi32(_mm512_castps_si512(shifted), 23)));
  }
};

}  // namespace penstock::nn::kernels::avx512
