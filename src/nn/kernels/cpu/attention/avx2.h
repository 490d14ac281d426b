// SPDX-License-Identifier: Apache-2.0
// Attention's f32 products in AVX2: blocks whose sums stay in registers. Include only in files whose code is
// chosen at run time (avx2_attention.cpp).
#pragma once

#include <immintrin.h>

#include "nn/kernels/cpu/attention/panels.h"

namespace penstock::nn::kernels::avx2 {

#define PENSTOCK_AVX2 __attribute__((target("avx2,fma")))
#define PENSTOCK_AVX2_INLINE PENSTOCK_AVX2 __attribute__((always_inline)) inline

// Rows from `row` on and 16 columns: to [Rows, 16] = (adds ? to : 0) + the products of all segments. Each
// element is one chain of sums, so its bits do not depend on the number of rows computed at once.
template <int Rows>
PENSTOCK_AVX2_INLINE void add_block(std::span<const Segment> segments, std::int64_t row, std::int64_t column,
                                    bool adds, float* to, std::int64_t stride) {
  constexpr int kGroup = Rows / 2;  // rows per pointer; a pointer per row would take too many registers
  __m256 sums[Rows][2];
#pragma GCC unroll 6
  for (int i = 0; i < Rows; ++i) {
    sums[i][0] = adds ? _mm256_loadu_ps(to + i * stride) : _mm256_setzero_ps();
    sums[i][1] = adds ? _mm256_loadu_ps(to + i * stride + 8) : _mm256_setzero_ps();
  }
  for (const Segment& segment : segments) {
    const Word* panel = segment.panel + column;
    const Word* groups[2] = {segment.left.at + row * segment.left.row,
                             segment.left.at + (row + kGroup) * segment.left.row};
    for (std::int64_t step = 0; step < segment.steps; ++step, panel += kPanel) {
      const __m256 first = _mm256_loadu_ps(panel), second = _mm256_loadu_ps(panel + 8);
#pragma GCC unroll 6
      for (int i = 0; i < Rows; ++i) {
        const __m256 word = _mm256_broadcast_ss(groups[i / kGroup] + i % kGroup * segment.left.row);
        sums[i][0] = _mm256_fmadd_ps(word, first, sums[i][0]);
        sums[i][1] = _mm256_fmadd_ps(word, second, sums[i][1]);
      }
      ++groups[0];
      ++groups[1];
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < Rows; ++i) {
    _mm256_storeu_ps(to + i * stride, sums[i][0]);
    _mm256_storeu_ps(to + i * stride + 8, sums[i][1]);
  }
}

// The same for an even number of rows other than 2 and a whole panel: 12 sums at a time keep both units busy.
inline PENSTOCK_AVX2 void add_rows(std::span<const Segment> segments, std::int64_t rows, bool adds, float* to,
                                   std::int64_t stride) {
  for (std::int64_t column = 0; column < kPanel; column += kPanel / 2) {
    std::int64_t row = 0;
    for (; (rows - row) % 6 != 0; row += 4)
      add_block<4>(segments, row, column, adds, to + row * stride + column, stride);
    for (; row < rows; row += 6)
      add_block<6>(segments, row, column, adds, to + row * stride + column, stride);
  }
}

}  // namespace penstock::nn::kernels::avx2
