// SPDX-License-Identifier: Apache-2.0
// Matrix products of tiles in cache, and the forms in which they want their right side.
//
// C [M, N] (+)= A [M, K] · B [K, N], f32 sums. A is plain rows. B is "paired": rows 2k and 2k+1 interleaved
// element by element in bf16 (K even; a missing row is zeros), plain rows in f32.
#pragma once

#include <ATen/native/CPUBlas.h>

#include "nn/kernels/element.h"
#include "nn/kernels/vectorised.h"

namespace penstock::nn::kernels {

// Rows of B that are interleaved.
template <class Element>
inline constexpr std::int64_t kPair = 1;
template <>
inline constexpr std::int64_t kPair<c10::BFloat16> = 2;

template <class Element>
std::int64_t padded(std::int64_t rows) {
  return (rows + kPair<Element> - 1) / kPair<Element> * kPair<Element>;
}

// Strides are elements from row to row (of B: as if it were plain).
template <class Element>
struct TileProduct {
  std::int64_t rows, columns, inner;
  std::int64_t a_stride, b_stride, c_stride;
  bool adds;  // to what C holds

  void operator()(const Element* a, const Element* b, float* c) const {
    at::native::cpublas::brgemm(rows, columns, inner, a_stride, b_stride, c_stride, adds, a, b, c,
                                kPair<Element> > 1);
  }
};

// Lets go of what products hold of the processor (tile registers); at the end of a task.
template <class Element>
void release_products() {
  at::native::cpublas::brgemm_release(kPair<Element> > 1);
}

// rows [count, width], each `stride` after the one before → paired [padded(count), width].
template <class Element>
PENSTOCK_VECTORISED void pack_rows(const Element* rows, std::int64_t stride, std::int64_t count,
                                   std::int64_t width, Element* packed) {
  constexpr std::int64_t pair = kPair<Element>;
  const std::int64_t whole = count / pair * pair;
  for (std::int64_t r = 0; r < whole; r += pair) {
    for (std::int64_t c = 0; c < width; ++c) {
      for (std::int64_t i = 0; i < pair; ++i) packed[r * width + c * pair + i] = rows[(r + i) * stride + c];
    }
  }
  for (std::int64_t c = 0; whole < count && c < width; ++c) {
    packed[whole * width + c * pair] = rows[whole * stride + c];
    for (std::int64_t i = 1; i < pair; ++i) packed[whole * width + c * pair + i] = Element(0);
  }
}

// The transpose of the same: rows [count, width] → paired [width, columns], columns from `count` on zeros.
// width is a multiple of the pair.
template <class Element>
PENSTOCK_VECTORISED void pack_transposed(const Element* rows, std::int64_t stride, std::int64_t count,
                                         std::int64_t width, std::int64_t columns, Element* packed) {
  constexpr std::int64_t pair = kPair<Element>;
  for (std::int64_t k = 0; k < width; k += pair) {
    Element* to = packed + k * columns;
    for (std::int64_t r = 0; r < columns; ++r) {
      for (std::int64_t i = 0; i < pair; ++i) {
        to[r * pair + i] = r < count ? rows[r * stride + k + i] : Element(0);
      }
    }
  }
}

// rows [count, width] → plain [width, columns], columns from `count` on zeros.
template <class Element>
PENSTOCK_VECTORISED void transpose_rows(const Element* rows, std::int64_t stride, std::int64_t count,
                                        std::int64_t width, std::int64_t columns, Element* transposed) {
  for (std::int64_t k = 0; k < width; ++k) {
    for (std::int64_t r = 0; r < columns; ++r) {
      transposed[k * columns + r] = r < count ? rows[r * stride + k] : Element(0);
    }
  }
}

}  // namespace penstock::nn::kernels
