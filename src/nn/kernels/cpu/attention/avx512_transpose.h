// SPDX-License-Identifier: Apache-2.0
// Transposes words by whole cache lines: the destination is often far away, and writing 16 bytes at a time
// would fetch every line four times.
#pragma once

#include "nn/kernels/cpu/attention/avx512.h"

namespace penstock::nn::kernels::avx512 {

// Transposes 16 by 16 words.
PENSTOCK_AVX512_INLINE void transpose_block(__m512 (&rows)[16]) {
  __m512 x[16];
  // First within quarters of registers, four rows at a time.
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    const __m512 low[2] = {_mm512_unpacklo_ps(rows[i], rows[i + 1]),
                           _mm512_unpacklo_ps(rows[i + 2], rows[i + 3])};
    const __m512 high[2] = {_mm512_unpackhi_ps(rows[i], rows[i + 1]),
                            _mm512_unpackhi_ps(rows[i + 2], rows[i + 3])};
    x[i] = _mm512_shuffle_ps(low[0], low[1], 0x44);
    x[i + 1] = _mm512_shuffle_ps(low[0], low[1], 0xEE);
    x[i + 2] = _mm512_shuffle_ps(high[0], high[1], 0x44);
    x[i + 3] = _mm512_shuffle_ps(high[0], high[1], 0xEE);
  }
  // Then quarters: column 4·q + i has its rows in the q-th quarters of x[i], x[4 + i], x[8 + i] and x[12 +
  // i].
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512 even[2] = {_mm512_shuffle_f32x4(x[i], x[i + 4], 0x88),
                            _mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0x88)};
    const __m512 odd[2] = {_mm512_shuffle_f32x4(x[i], x[i + 4], 0xDD),
                           _mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0xDD)};
    rows[i] = _mm512_shuffle_f32x4(even[0], even[1], 0x88);
    rows[i + 4] = _mm512_shuffle_f32x4(odd[0], odd[1], 0x88);
    rows[i + 8] = _mm512_shuffle_f32x4(even[0], even[1], 0xDD);
    rows[i + 12] = _mm512_shuffle_f32x4(odd[0], odd[1], 0xDD);
  }
}

// rows [count, width] → [width, columns]; columns from `count` on are zero. 16 divides width and columns.
inline PENSTOCK_AVX512 void transpose(const Word* rows, std::int64_t stride, std::int64_t count,
                                      std::int64_t width, std::int64_t columns, Word* transposed) {
  for (std::int64_t first = 0; first < columns; first += 16) {
    for (std::int64_t at = 0; at < width; at += 16) {
      __m512 block[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) {
        block[i] =
            first + i < count ? _mm512_loadu_ps(rows + (first + i) * stride + at) : _mm512_setzero_ps();
      }
      transpose_block(block);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_storeu_ps(transposed + (at + i) * columns + first, block[i]);
    }
  }
}

// Packs up to 32 rows into a panel [width in words, 32].
template <class Element>
void pack_panel(const Element* rows, std::int64_t stride, std::int64_t count, std::int64_t width,
                Element* panel) {
  constexpr std::int64_t kPair = kernels::kPair<Element>;
  if (stride % kPair != 0) return pack_transposed(rows, stride, count, width, kPanel, panel);
  transpose(words(rows), stride / kPair, count, width / kPair, kPanel, words(panel));
}

// Multiplies the first `count` columns of a panel [width, 32] by their factors; writes them as rows of width.
inline PENSTOCK_AVX512 void write_columns(const float* panel, const float* factors, std::int64_t width,
                                          std::int64_t count, float* rows, std::int64_t stride) {
  for (std::int64_t first = 0; first < count; first += 16) {
    const __m512 factor = _mm512_loadu_ps(factors + first);
    for (std::int64_t at = 0; at < width; at += 16) {
      __m512 block[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i)
        block[i] = _mm512_mul_ps(factor, _mm512_loadu_ps(panel + (at + i) * kPanel + first));
      transpose_block(block);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) {
        if (first + i < count) _mm512_storeu_ps(rows + (first + i) * stride + at, block[i]);
      }
    }
  }
}

}  // namespace penstock::nn::kernels::avx512
