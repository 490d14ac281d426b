// SPDX-License-Identifier: Apache-2.0
// Attention's products in AVX-512: operands, and blocks whose sums stay in registers. Include only in files
// whose code is chosen at run time (avx512_attention.cpp, amx_attention.cpp).
//
// bf16 instructions are inline assembly, so that all loops are compiled for processors without them.
#pragma once

#include <immintrin.h>

#include <type_traits>

#include "nn/kernels/cpu/attention/panels.h"

namespace penstock::nn::kernels::avx512 {

#define PENSTOCK_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#define PENSTOCK_AVX512_INLINE PENSTOCK_AVX512 __attribute__((always_inline)) inline

// sum += a · b, summed over the elements of each word.
template <class Element>
PENSTOCK_AVX512_INLINE void multiply_add(__m512& sum, __m512 a, __m512 b) {
  if constexpr (std::is_same_v<Element, float>) {
    sum = _mm512_fmadd_ps(a, b, sum);
  } else {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  }
}

// Rounds two registers to bf16: the elements of `first`, then those of `second`.
PENSTOCK_AVX512_INLINE __m512i narrowed_pair(__m512 first, __m512 second) {
  __m512i narrow;
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(narrow) : "v"(first), "v"(second));
  return narrow;
}

// Rows from `row` on: to [Rows, 32] = (adds ? to : 0) + the products of all segments. Each element is one
// chain of sums, so its bits do not depend on the number of rows computed at once.
template <class Element, int Rows>
PENSTOCK_AVX512_INLINE void add_block(std::span<const Segment> segments, std::int64_t row, bool adds,
                                      float* to, std::int64_t stride) {
  __m512 sums[Rows][2];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    sums[i][0] = adds ? _mm512_loadu_ps(to + i * stride) : _mm512_setzero_ps();
    sums[i][1] = adds ? _mm512_loadu_ps(to + i * stride + 16) : _mm512_setzero_ps();
  }
  for (const Segment& segment : segments) {
    const auto [left, panel, steps] = segment;
    const Word* fours[Rows / 4];
#pragma GCC unroll 4
    for (int i = 0; i < Rows / 4; ++i) fours[i] = left.at + (row + 4 * i) * left.row;
    for (std::int64_t step = 0; step < steps; ++step) {
      const __m512 first = _mm512_loadu_ps(panel + step * kPanel),
                   second = _mm512_loadu_ps(panel + step * kPanel + 16);
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
        const __m512 word = _mm512_set1_ps(fours[i / 4][i % 4 * left.row]);
        multiply_add<Element>(sums[i][0], word, first);
        multiply_add<Element>(sums[i][1], word, second);
      }
#pragma GCC unroll 4
      for (int i = 0; i < Rows / 4; ++i) {
        ++fours[i];
        asm("" : "+r"(fours[i]));  // else the compiler keeps a pointer per row, more than it has registers
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    _mm512_storeu_ps(to + i * stride, sums[i][0]);
    _mm512_storeu_ps(to + i * stride + 16, sums[i][1]);
  }
}

// The same for a multiple of 8 rows: 24 sums at a time keep both units busy, 16 nearly.
template <class Element>
PENSTOCK_AVX512 void add_rows(std::span<const Segment> segments, std::int64_t rows, bool adds, float* to,
                              std::int64_t stride) {
  std::int64_t row = 0;
  for (; (rows - row) % 12 != 0; row += 8)
    add_block<Element, 8>(segments, row, adds, to + row * stride, stride);
  for (; row < rows; row += 12) add_block<Element, 12>(segments, row, adds, to + row * stride, stride);
}

}  // namespace penstock::nn::kernels::avx512
