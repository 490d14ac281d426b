// SPDX-License-Identifier: Apache-2.0
// Matrix products of tiles in cache, and the layout of their right operand.
//
// C [M, N] (+)= A [M, K] · B [K, N], with f32 sums. A has plain rows. B is "paired": in bf16, rows 2k and
// 2k+1 are interleaved element by element (K even; a missing row is zeros); in f32, rows are plain.
#pragma once

#include <ATen/native/CPUBlas.h>
#include <emmintrin.h>

#include "nn/kernels/cpu/element.h"
#include "nn/kernels/cpu/vectorised.h"

namespace penstock::nn::kernels {

// Number of rows of B that are interleaved.
template <class Element>
inline constexpr std::int64_t kPair = 1;
template <>
inline constexpr std::int64_t kPair<c10::BFloat16> = 2;

template <class Element>
std::int64_t padded(std::int64_t rows) {
  return (rows + kPair<Element> - 1) / kPair<Element> * kPair<Element>;
}

// Strides are row strides in elements (B's as if it were plain).
template <class Element>
struct TileProduct {
  std::int64_t rows, columns, inner;
  std::int64_t a_stride, b_stride, c_stride;
  bool adds;  // add to C instead of overwriting it

  void operator()(const Element* a, const Element* b, float* c) const {
    at::native::cpublas::brgemm(rows, columns, inner, a_stride, b_stride, c_stride, adds, a, b, c,
                                kPair<Element> > 1);
  }
};

// Releases the processor state of the products (tile registers). Call at the end of a task.
template <class Element>
void release_products() {
  at::native::cpublas::brgemm_release(kPair<Element> > 1);
}

// Interleaves as many elements of two rows as fill whole vectors; returns their number.
inline std::int64_t interleave(const c10::BFloat16* first, const c10::BFloat16* second, std::int64_t width,
                               c10::BFloat16* paired) {
  std::int64_t c = 0;
  for (; c + 8 <= width; c += 8) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(first + c));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(second + c));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(paired + 2 * c), _mm_unpacklo_epi16(a, b));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(paired + 2 * c + 8), _mm_unpackhi_epi16(a, b));
  }
  return c;
}

// rows [count, width] with row stride `stride` → paired [padded(count), width].
template <class Element>
void pack_rows(const Element* rows, std::int64_t stride, std::int64_t count, std::int64_t width,
               Element* packed) {
  constexpr std::int64_t pair = kPair<Element>;
  const std::int64_t whole = count / pair * pair;
  for (std::int64_t r = 0; r < whole; r += pair) {
    std::int64_t c = 0;
    if constexpr (pair == 2) {
      c = interleave(rows + r * stride, rows + (r + 1) * stride, width, packed + r * width);
    }
    for (; c < width; ++c) {
      for (std::int64_t i = 0; i < pair; ++i) packed[r * width + c * pair + i] = rows[(r + i) * stride + c];
    }
  }
  for (std::int64_t c = 0; whole < count && c < width; ++c) {
    packed[whole * width + c * pair] = rows[whole * stride + c];
    for (std::int64_t i = 1; i < pair; ++i) packed[whole * width + c * pair + i] = Element(0);
  }
}

// Transposes a 4 by 4 tile of 32-bit words; strides in words.
inline void transpose_words(const void* from, std::int64_t from_stride, void* to, std::int64_t to_stride) {
  const auto row = [&](std::int64_t i) {
    return _mm_loadu_si128(
        reinterpret_cast<const __m128i*>(static_cast<const char*>(from) + 4 * i * from_stride));
  };
  const __m128i low[2] = {_mm_unpacklo_epi32(row(0), row(1)), _mm_unpacklo_epi32(row(2), row(3))};
  const __m128i high[2] = {_mm_unpackhi_epi32(row(0), row(1)), _mm_unpackhi_epi32(row(2), row(3))};
  const auto put = [&](std::int64_t i, __m128i column) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(static_cast<char*>(to) + 4 * i * to_stride), column);
  };
  put(0, _mm_unpacklo_epi64(low[0], low[1]));
  put(1, _mm_unpackhi_epi64(low[0], low[1]));
  put(2, _mm_unpacklo_epi64(high[0], high[1]));
  put(3, _mm_unpackhi_epi64(high[0], high[1]));
}

// Like pack_rows(), transposed: rows [count, width] → paired [width, columns]; columns from `count` on are
// zero. width is a multiple of the pair. Pairs are 32-bit words in both types.
template <class Element>
void pack_transposed(const Element* rows, std::int64_t stride, std::int64_t count, std::int64_t width,
                     std::int64_t columns, Element* packed) {
  constexpr std::int64_t pair = kPair<Element>, tile = 4 * pair;
  static_assert(pair * sizeof(Element) == 4);
  const std::int64_t whole_rows = count / 4 * 4, whole_width = stride % pair == 0 ? width / tile * tile : 0;
  for (std::int64_t r = 0; r < whole_rows; r += 4) {
    for (std::int64_t k = 0; k < whole_width; k += tile)
      transpose_words(rows + r * stride + k, stride / pair, packed + k * columns + r * pair, columns);
  }
  for (std::int64_t k = 0; k < width; k += pair) {
    Element* to = packed + k * columns;
    for (std::int64_t r = k < whole_width ? whole_rows : 0; r < columns; ++r) {
      for (std::int64_t i = 0; i < pair; ++i) {
        to[r * pair + i] = r < count ? rows[r * stride + k + i] : Element(0);
      }
    }
  }
}

// Transposes an 8 by 8 tile of 16-bit elements in three rounds of interleaving.
inline void transpose_tile(const c10::BFloat16* from, std::int64_t from_stride, c10::BFloat16* to,
                           std::int64_t to_stride) {
  __m128i rows[8], pairs[8], quads[8];
  for (int i = 0; i < 8; ++i) {
    rows[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * from_stride));
  }
  for (int i = 0; i < 4; ++i) {
    pairs[i] = _mm_unpacklo_epi16(rows[2 * i], rows[2 * i + 1]);
    pairs[4 + i] = _mm_unpackhi_epi16(rows[2 * i], rows[2 * i + 1]);
  }
  for (int half = 0; half < 8; half += 4) {
    for (int i = 0; i < 2; ++i) {
      quads[half + i] = _mm_unpacklo_epi32(pairs[half + 2 * i], pairs[half + 2 * i + 1]);
      quads[half + 2 + i] = _mm_unpackhi_epi32(pairs[half + 2 * i], pairs[half + 2 * i + 1]);
    }
  }
  for (int i = 0; i < 4; ++i) {
    const __m128i low = _mm_unpacklo_epi64(quads[2 * i], quads[2 * i + 1]);
    const __m128i high = _mm_unpackhi_epi64(quads[2 * i], quads[2 * i + 1]);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * i * to_stride), low);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + (2 * i + 1) * to_stride), high);
  }
}

// rows [count, width] → plain [width, columns]; columns from `count` on are zero.
template <class Element>
void transpose_rows(const Element* rows, std::int64_t stride, std::int64_t count, std::int64_t width,
                    std::int64_t columns, Element* transposed) {
  constexpr std::int64_t tile = 16 / sizeof(Element);
  const std::int64_t whole_rows = count / tile * tile, whole_columns = width / tile * tile;
  for (std::int64_t r = 0; r < whole_rows; r += tile) {
    for (std::int64_t k = 0; k < whole_columns; k += tile) {
      const Element* from = rows + r * stride + k;
      Element* to = transposed + k * columns + r;
      if constexpr (tile == 8) transpose_tile(from, stride, to, columns);
      if constexpr (tile == 4) transpose_words(from, stride, to, columns);
    }
  }
  for (std::int64_t k = 0; k < width; ++k) {
    for (std::int64_t r = k < whole_columns ? whole_rows : 0; r < columns; ++r) {
      transposed[k * columns + r] = r < count ? rows[r * stride + k] : Element(0);
    }
  }
}

}  // namespace penstock::nn::kernels
